"""Readers of tables: text tables, Parquet, Arrow IPC files and data frames."""
