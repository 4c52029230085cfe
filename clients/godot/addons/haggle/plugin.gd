@tool
extends EditorPlugin
# Nothing to set up: the class Haggle can be used anywhere.
