"""Files of prices as vendors write them, brought into a folder of the desk's own form."""
