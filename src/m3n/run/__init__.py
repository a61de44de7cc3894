"""Running a solver: the one loop, certificates, callbacks, checkpoints, paths over the regularisation."""
