"""Ollama's recipe for a GGUF file: `Modelfile.Q8_0` beside the file, for `ollama create -f`.

The template says what `haggle.weights.chat_template` says, in the few constructs of Go's templates
whose meaning is plain. The penalty on repeated tokens is switched off: Ollama has one by default.
"""

from __future__ import annotations

from pathlib import Path

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_write_text
from haggle.trade.merchant import MAX_TOKENS
from haggle.weights.chat_template import Family

CONTEXT = 4096


def ollama_template(family: Family) -> str:
    """The Go template of a family's markup, with the opening of the answer at its end.

    Raises HaggleError for markup that takes more than a turn for each message (Gemma has no system
    turn, Gemma and Llama 3 trim their texts).
    """
    if not family.system_turn or family.trimmed:
        raise HaggleError(
            f"no Ollama template for the markup of {family.name}",
            hint="write the Modelfile by hand, from the template of that model in Ollama's library",
        )
    turn = f"{family.start}{{{{ .Role }}}}{family.header}{{{{ .Content }}}}{family.end}{family.gap}"
    opening = f"{family.start}{family.assistant}{family.header}"
    return f"{family.bos}{{{{ range .Messages }}}}{turn}{{{{ end }}}}{opening}"


def modelfile(gguf: str, family: Family, licence: str, context: int = CONTEXT) -> str:
    """The text of a Modelfile for the file named `gguf` in the same directory; greedy answers.

    `context` is in tokens. Raises HaggleError as `ollama_template` does.
    """
    lines = [
        "# Run in this directory: ollama create merchant -f and the name of this file.",
        "# The model answers in Haggle's compact JSON: prices, stock and the ledger are Haggle's.",
        f"FROM ./{gguf}",
        f'TEMPLATE """{ollama_template(family)}"""',
        f'PARAMETER stop "{family.end}"',
        f'PARAMETER stop "{family.start}"',
        "PARAMETER temperature 0",
        "PARAMETER repeat_penalty 1.0",
        f"PARAMETER num_ctx {context}",
        f"PARAMETER num_predict {MAX_TOKENS}",
    ]
    if licence != "unknown":
        lines.append(f'LICENSE """{licence}"""')
    return "\n".join(lines) + "\n"


def write_modelfile(gguf: Path, quantization: str, family: Family, licence: str) -> Path:
    """Write the Modelfile of a GGUF beside it."""
    path = gguf.with_name(f"Modelfile.{quantization}")
    atomic_write_text(path, modelfile(gguf.name, family, licence))
    return path
