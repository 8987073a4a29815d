from streamkit.lab.mock.writing import Answer


def test_the_body_is_all_frames():
    answer = Answer(dialect="ollama", frames=(b'{"a":1}\n', b'{"b":2}\n'), content_type="application/x-ndjson")
    assert answer.body == b'{"a":1}\n{"b":2}\n'
    assert (answer.end, answer.streamed, answer.status) == ("whole", True, 200)
