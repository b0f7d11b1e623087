"""The live source: Yahoo Finance through yfinance."""
