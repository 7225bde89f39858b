"""Many runs, on this machine, a Ray cluster or through Slurm; what is there is not run again."""
