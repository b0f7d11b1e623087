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
                f"{server} at {address} gives no answer in time{words}; is it hung, or does a "
                f"firewall drop what is sent to it? is {setting} right?"
            )
        case OSError() if error.errno in NOWHERE:
            return f"there is no way to {address}{words}; is this machine's network up?"
    return f"{server} at {address} cannot be used{words}; is {setting} right?"
