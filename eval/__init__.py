"""The papers' measures, rerun: experiments, turn cases, metrics, published figures, report."""
