"""What Ray prints when it does not join a cluster, and what is said of it."""

from __future__ import annotations

import pytest

from raysel.execution.ray.head import refusal

#: Lines of Ray 2.60, each from a cluster on two hosts.
OUTPUTS = {
    "[W 218 218] gcs_client.cc:210: Failed to get cluster ID from GCS server: Unauthenticated: RPC error: "
    "InvalidAuthToken: Authentication token is missing or incorrect": "asks for a token, and this process has none",
    "ray.exceptions.AuthenticationError: Token authentication is enabled but no authentication token was found": (
        "asks for a token"
    ),
    "[W 602 602] rpc_client.h:153: Failed to connect to GCS at address 10.0.0.1:6380 within 5 seconds.": (
        "no Ray cluster answers there"
    ),
    "[C 4033 4033] raylet_ipc_client.cc:85: Failed to connect to socket at address:/tmp/ray/sockets/raylet": (
        "this machine is not one of its nodes"
    ),
    "RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\nThis process "
    "on 10.0.0.2 was started with:\n    Ray: 2.54.0\n    Python: 3.12.1\n": (
        "the cluster runs Ray 2.60.0 on Python 3.11.7, and this process Ray 2.54.0 on Python 3.12.1"
    ),
    "Traceback\nOSError: something else": "cannot be joined: OSError: something else",
    "": "cannot be joined, as it does not answer",
}


@pytest.mark.parametrize(("output", "expected"), OUTPUTS.items())
def test_the_reason_is_said_in_plain_words(output, expected):
    said = refusal("10.0.0.1:6379", output)
    assert said.startswith("address 10.0.0.1:6379: ")
    assert expected in said
    assert "\n" not in said
