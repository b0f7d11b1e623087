"""An operation's calls and result as people read them: in a sentence, a chat, a line. Pure."""
