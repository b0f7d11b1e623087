"""Alpaca as a live source of prices and headlines."""
