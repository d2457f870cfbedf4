"""The proxy of `sandbox.network: listed`. Needs Python 3.11 or newer, which the operator's image has."""
