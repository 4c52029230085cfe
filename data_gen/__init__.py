"""Players, teachers and worlds that write labelled trading dialogues."""
