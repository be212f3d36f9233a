#!/bin/bash
# Trains on several machines of a Slurm cluster:
#
#     sbatch examples/slurm.sh --data /shared/data --heldout /shared/heldout --workdir /shared/run --preset original
#
# Slurm starts a worker on each machine, which uses all the GPUs that it is given. Ten minutes before the time is
# up, or when the job is preempted, SIGTERM makes training save a checkpoint and stop; the job then queues again and
# resumes. Workers look for the signal every train.log_steps steps: these and a checkpoint have to fit into the ten
# minutes, and into the cluster's grace time on preemption.
#SBATCH --job-name=elmo
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@600
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

# "host0:20042","host1:20042",...: a port for each job, as another one may run on the same machines.
port=$((20000 + SLURM_JOB_ID % 10000))
ELMO_WORKERS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/.*/\"&:$port\"/" | paste -sd, -)
export ELMO_WORKERS
# Since Slurm 22.05, srun does not take --cpus-per-task from sbatch.
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}

# On preemption this script gets SIGTERM too; it has to wait for the workers.
trap : TERM
status=0
# The workers all end when one does. With --kill-on-bad-exit, srun would kill those that are still saving.
srun --kill-on-bad-exit=0 bash -c '
    export TF_CONFIG="{\"cluster\": {\"worker\": [$ELMO_WORKERS]}, \"task\": {\"type\": \"worker\", \"index\": $SLURM_PROCID}}"
    exec elmo-tf train "$@"
' elmo "$@" || status=$?

# 130: stopped by a signal, checkpoint saved.
if [ "$status" -eq 130 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
