"""The terms of a fill on arrays."""

import numpy as np

from libs.quant.strategy.fills import Terms


def test_a_sale_brings_a_cent_a_share_at_the_least():
    terms = Terms(slippage_bps=100, whole=True)
    prices = terms.price(np.array([0.004, 0.013, 0.02]), np.array([-1, -1, -1]))
    assert prices.tolist() == [0.01, 0.01, 0.01]
