"""``streamkit record``: a reverse proxy that records each exchange with one provider.

Source: observe.md O24, O25.
"""
