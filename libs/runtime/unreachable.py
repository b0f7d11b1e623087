"""One sentence for each way in which a server at an address is not reached."""

import errno
import socket

NOWHERE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH})


def unreachable(server: str, address: str, setting: str, error: BaseException) -> str:
    """Say that `server` at `address`, which `setting` names, is not reached, and what to do."""
    words = f" ({type(error).__name__}: {error})"[:300]
    match error:
        case socket.gaierror():
            return f"no host is known by the name in {address}{words}; is {setting} right?"
        case ConnectionRefusedError() | FileNotFoundError():
            return (
                f"{server} does not listen at {address}{words}; is the desk up, and is {setting} "
                "right?"
            )
        case TimeoutError():
            return (
                f"{server} at {address} does not answer in time{words}; check whether it hangs, a "
                f"firewall blocks it, or {setting} is wrong"
            )
        case OSError() if error.errno in NOWHERE:
            return f"{address} cannot be reached{words}; check this machine's network"
    return f"{server} at {address} cannot be used{words}; is {setting} right?"
