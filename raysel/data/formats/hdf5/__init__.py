"""Reading of HDF5 files and of MATLAB files of version 7.3."""
