#!/bin/bash
# A study on the machines of a Slurm job: sbatch conf/cluster/slurm.sh CONFIG.yaml [arguments of raysel.tune]
# It runs in the folder in which sbatch was called, which all machines must see, and raysel must be installed there.
# The end of the job's time, or `scancel --batch --signal=TERM JOB`, ends the study as Ctrl-C does: submit again with
# --resume DIR. A plain scancel ends Ray at the same moment; the trials that had ended are kept, too.
#SBATCH --job-name=raysel
#SBATCH --nodes=2                # fill in
#SBATCH --ntasks-per-node=1      # one Ray a machine, which starts as many workers as the task has CPUs
#SBATCH --cpus-per-task=8        # fill in
#SBATCH --time=12:00:00          # fill in
#SBATCH --signal=B:TERM@60       # a minute before the end of the time
set -euo pipefail

# shellcheck source=/dev/null
source .venv/bin/activate        # fill in: the environment with raysel

# The first machine, on which this script runs. With several networks choose the address that the others reach.
address=$(hostname --all-ip-addresses | awk '{print $1}')
port=$((20000 + SLURM_JOB_ID % 10000)) # two jobs may share a machine

export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# Others reach these machines too: Ray takes nobody without this job's token, a file of mode 0600 that all machines see.
RAY_AUTH_TOKEN_PATH=$(mktemp "$PWD/.ray-token-XXXXXX")
export RAY_AUTH_TOKEN_PATH RAY_AUTH_MODE=token
trap 'rm -f "$RAY_AUTH_TOKEN_PATH"' EXIT
python -c "import secrets; print(secrets.token_hex(32), end='')" >"$RAY_AUTH_TOKEN_PATH"

# Ray runs in a step of its own, because a signal to a step reaches all of its processes and the study needs Ray to end.
log=ray-$SLURM_JOB_ID.log
options="--num-cpus=$SLURM_CPUS_PER_TASK --disable-usage-stats --block"
srun --kill-on-bad-exit=1 bash -c "
    if [ \$SLURM_PROCID = 0 ]; then
        exec ray start --head --node-ip-address=$address --port=$port --include-dashboard=false $options
    fi
    until (: >/dev/tcp/$address/$port) 2>/dev/null; do sleep 1; done
    exec ray start --address=$address:$port $options" >"$log" 2>&1 &
ray=$!
n_nodes="import ray; ray.init('$address:$port', logging_level='ERROR', log_to_driver=False); print(len(ray.nodes()))"
until [ "$(python -c "$n_nodes" 2>/dev/null)" = "$SLURM_JOB_NUM_NODES" ]; do
    if ! kill -0 "$ray" 2>/dev/null || ((SECONDS > 300)); then
        echo "Ray did not start on all machines: see $log" >&2
        exit 1
    fi
    sleep 1
done

export RAYSEL_COMMAND="sbatch conf/cluster/slurm.sh" # for the message that says how to resume
python -m raysel.tune --address "$address:$port" "$@" &
study=$!
trap 'kill -TERM "$study"' TERM
status=0
wait "$study" || status=$?
if kill -0 "$study" 2>/dev/null; then # the first wait ends at the trap
    status=0
    wait "$study" || status=$?
fi
kill "$ray" # and Ray on all machines
exit "$status"
