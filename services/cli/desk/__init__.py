"""The desk as a process: started, in the background too, looked at, stopped, begun from nothing."""
