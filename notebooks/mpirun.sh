#!/bin/sh
# Runs a script as ranks of MPI, on this machine or on those of a host file:
#   notebooks/mpirun.sh -n 4 train.lua
#   notebooks/mpirun.sh -n 16 --hostfile hosts train.lua      (hosts: one "name slots=8" on each line)
# Under Slurm no mpirun is needed: srun -n 16 lunaria train.lua
# The program is installed at the same path on all machines, or LUNARIA names it; the script lies where all of them see it.
set -eu
ranks=
hosts=
while [ $# -gt 0 ]; do
    case $1 in
        -n) ranks=$2 && shift 2 ;;
        --hostfile) hosts=$2 && shift 2 ;;
        *) break ;;
    esac
done
if [ -z "$ranks" ] || [ $# -eq 0 ]; then
    echo "usage: mpirun.sh -n RANKS [--hostfile FILE] script.lua [args]" >&2
    exit 2
fi
program=${LUNARIA:-lunaria}
# Ranks of one machine share its processors.
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export OMP_NUM_THREADS
if [ -n "$hosts" ]; then
    exec mpirun -n "$ranks" --hostfile "$hosts" -x OMP_NUM_THREADS "$program" "$@"
fi
exec mpirun -n "$ranks" --oversubscribe "$program" "$@"
