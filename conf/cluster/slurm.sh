#!/bin/bash
# A study on the machines of a Slurm job: sbatch conf/cluster/slurm.sh CONFIG.yaml [arguments of raysel.tune]
# It runs in the folder in which sbatch was called, which all machines must see, and raysel must be installed there.
# The end of the job's time, or scancel, ends the study as Ctrl-C does: submit again with --resume DIR.
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
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=300 # seconds until all machines have joined
trap 'scancel --signal=TERM "$SLURM_JOB_ID.0" || true' TERM
srun --kill-on-bad-exit=1 ray symmetric-run --address "$address:$port" --min-nodes "$SLURM_JOB_NUM_NODES" \
    --num-cpus="$SLURM_CPUS_PER_TASK" --disable-usage-stats -- \
    python -m raysel.tune --address "$address:$port" "$@" &
study=$!
wait "$study" || wait "$study" # the first wait ends at the trap
