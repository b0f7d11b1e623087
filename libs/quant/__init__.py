"""Pure calculations: values and polars frames in, values out. No clock, no I/O."""
