"""Random proposals through the risk rules: `python -m benchmarks.risk [CASES] [FIRST_SEED]`.

Every case is checked against all properties of tests/unit/quant/risk/test_properties.py (nothing
increased, nothing over 100 %, budget or a limit, no gate passed, all told, order of picks and rules
without effect, its own result left as it is). Prints violations and time; exit 1 where there are
any.
"""

import sys
import time
from collections import Counter

from tests.unit.quant.risk.test_properties import PROPERTIES, seeded

CASES = 100_000
SHOWN_MAX = 10


def main(cases: int, first_seed: int) -> int:
    """Run them; how many violations there were."""
    broken: Counter[str] = Counter()
    judging_s, began = 0.0, time.perf_counter()
    for seed in range(first_seed, first_seed + cases):
        case = seeded(seed)
        start = time.process_time()
        verdict = case.judge()
        judging_s += time.process_time() - start
        for holds in PROPERTIES:
            try:
                holds(case, verdict)
            except AssertionError:
                broken[holds.__name__] += 1
                if broken.total() <= SHOWN_MAX:
                    print(f"seed {seed}: {holds.__name__}", file=sys.stderr)
    took_s = time.perf_counter() - began
    print(
        f"{cases:,} random inputs, {broken.total()} violations, {took_s:.1f} s in all, "
        f"{judging_s / cases * 1e6:.0f} CPU-us for one run of the rules"
    )
    return broken.total()


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:3]]
    sys.exit(1 if main(*numbers, *(CASES, 1_000_000)[len(numbers) :]) else 0)
