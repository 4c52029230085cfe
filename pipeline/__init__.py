"""Work that spans the rooms: data, training and evaluation in one run."""
