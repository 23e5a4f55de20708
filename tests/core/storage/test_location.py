"""URIs: what is read, what is refused, and that credentials are shown nowhere."""

import re
from pathlib import Path
from urllib.parse import quote

import pyarrow.fs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.config import load_comparison, load_config
from raysel.core.errors import ConfigError
from raysel.core.storage.location import Location, as_uri, parse_location, set_credentials_aside
from raysel.core.storage.transfer import reason

PRINTABLE = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12
).filter(str.isprintable)


@settings(max_examples=25)  # the client of S3 starts with the first
@given(
    st.lists(
        PRINTABLE.filter(lambda part: part not in (".", "..") and "/" not in part),
        min_size=1,
        max_size=3,
    )
)
def test_a_key_is_read_as_pyarrow_reads_it(parts):
    uri = f"s3://bucket/{'/'.join(map(quote, parts))}?region=eu-central-1"
    location = parse_location(uri)
    assert location.path == pyarrow.fs.FileSystem.from_uri(uri)[1] == f"bucket/{'/'.join(parts)}"
    assert parse_location(str(location)) == location


@given(PRINTABLE, PRINTABLE)
def test_credentials_are_no_part_of_what_is_shown(key, secret):
    key, secret = f"KEY{key}", f"SECRET{secret}"
    location = parse_location(f"s3://{quote(key, safe='')}:{quote(secret, safe='')}@bucket/study")
    assert str(location) == "s3://bucket/study" == set_credentials_aside("s3://bucket/study")
    assert location.secrets == (key, secret)
    said = reason(OSError(f"strange: {key} {secret}"), location)
    assert "SECRET" not in said
    assert "KEY" not in said


def test_credentials_in_a_configuration_are_in_none_that_is_written():
    secret = "s3://NAME:SECRET@bucket"
    study = load_config(
        "digits-smr", {"output": f"{secret}/out", "dataset.path": f"{secret}/a.npz"}
    )
    raw = {"name": "two", "dataset": {"path": f"{secret}/a.npz"}, "output": f"{secret}/out"}
    members = {"one": {"solver": {"name": "smr"}}, "other": {"solver": {"name": "rfs"}}}
    comparison = load_comparison({**raw, "compare": members})
    for config in (study, comparison):
        assert "SECRET" not in repr(config)
        assert "SECRET" not in repr(config.to_dict())
        assert config.to_dict()["dataset"]["path"] == "s3://bucket/a.npz"
        assert config.output == "s3://bucket/out"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("abfss://container@account/x", "no reader for the scheme abfss"),
        ("https://user:SECRET@host/x.npz?token=SECRET", "no reader for the scheme https"),
        ("s3:///key", "the bucket is missing"),
        ("gs://", "the bucket is missing"),
        ("s3://KEY:SEC/SECRET@bucket/key", "percent-encoded"),
        ("s3://KEY:SECRET@bucket/key?colour=red", "option colour is unknown; options are region"),
        ("s3://bucket/key#SECRET", "part behind # is unknown"),
        ("s3://bucket/a//b", "empty part"),
        ("s3://bucket/../b", "'..'"),
        ("s3://bucket/a%1b[31m", "control character"),
        ("s3://bu\x1b[31mck/x?token=SECRET", "write a [ or ] in a name as %5B or %5D"),
        ("s3://KEY:SECRET@bu]ck/x", "write a [ or ] in a name as %5B or %5D"),
        ("gs://[SECRET/x", "write a [ or ] in a name as %5B or %5D"),
        ("file://host/x", "three slashes"),
        ("s3://bucket/key?endpoint_override=http://u:SECRET@h", "holds an @"),
    ],
)
def test_what_cannot_be_read_is_named_without_secrets(uri, said):
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        parse_location(uri)
    assert "SECRET" not in str(caught.value).replace("AWS_SECRET_ACCESS_KEY", "")
    assert str(caught.value).isprintable()


def test_a_path_is_no_uri_and_a_uri_made_a_path_is_one():
    assert as_uri("data/faces.npz") is as_uri(Path("/data/faces.npz")) is as_uri(None) is None
    for uri in ("s3://bucket/key", "gs://bucket/key", "file:///data/faces.npz"):
        assert as_uri(Path(uri)) == as_uri(uri) == uri


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "AWS Error NO_SUCH_BUCKET during CreateMultipartUpload operation",
            "there is no bucket faces",
        ),
        (
            "AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
            "AWS_ACCESS_KEY_ID",
        ),
        (
            "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 6",
            "does not answer",
        ),
        ("Permanent error: PERMISSION_DENIED", "access is denied"),
        (
            "Could not create a OAuth2 access token to authenticate the request.",
            "no credentials were found",
        ),
    ],
)
def test_reasons_say_what_to_do(text, said):
    assert said in reason(OSError(text), Location("s3", "faces/orl.npz"))
