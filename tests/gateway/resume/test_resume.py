"""Which store a configuration says, and what is wrong with it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.gateway import checks
from streamkit.gateway.config import Resume, describe, look_at_store, store_of
from streamkit.resume import MemoryStore
from streamkit.resume.redis_store import RedisStore
from streamkit.web.upstream import Secret
from tests.gateway.configuring import CANARY, GOOD, faults, parse
from tests.resume.servers import free_port, running

REDIS = '[resume]\nstore = "redis"\nurl = { env = "REDIS_URL" }\n'


def configured(url):
    return evolve(parse(GOOD), resume=Resume(store="redis", url=Secret(url)))


async def test_the_store_is_the_one_of_the_configuration():
    store = store_of(parse(GOOD), boot="aaaabbbbcccc")
    assert isinstance(store, MemoryStore)
    assert store.new_id().endswith(".aaaabbbbcccc")
    text = f'{REDIS}prefix = "ours"\nlease_s = 3\nflush_ms = 20\nretry_s = 4\nbehind_bytes = 5\nall_behind_bytes = 6\nwait_replicas = 1\nttl_s = 7\n'
    store = store_of(parse(GOOD + text))
    assert isinstance(store, RedisStore)
    wanted = {
        "prefix": "ours", "lease_s": 3, "flush_s": 0.02, "retry_s": 4, "behind_bytes": 5, "all_behind_bytes": 6,
        "wait_replicas": 1,
    }  # fmt: skip
    assert {name: getattr(store.settings, name) for name in wanted} == wanted
    assert store.limits.ttl_s == 7
    await store.close()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('store = "redis"', 'resume.url: is required for store = "redis": redis://host:port/0, rediss://…'),
        ('url = { env = "REDIS_URL" }', 'resume.url: is allowed only with store = "redis"'),
        ('store = "redis"\nurl = { env = "KEY" }', "resume.url: must be the URL of a server: redis://"),
        ('store = "redis"\nurl = { env = "NO_PORT" }', "resume.url: must be the URL of a server"),
        ('store = "redis"\nurl = { env = "REDIS_OPTION" }', "resume.url: may have only the query options"),
        ('store = "redis"\nurl = "redis://a"', "resume.url: must not be a key itself"),
        ('store = "valkey"', 'resume.store: must be one of memory, redis, off, not "valkey"'),
        (f'{REDIS[9:]}prefix = "a b"', "resume.prefix: must be 1 to 64 letters"),
        (f"{REDIS[9:]}lease_s = 0", "resume.lease_s: must be > 0"),
    ],
)
def test_what_is_wrong_with_the_table_is_told(table, told):
    (line,) = faults(f"{GOOD}[resume]\n{table}\n")
    assert told in line


def test_a_missing_extra_is_told_with_its_name(monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == "redis" else find_spec(name))
    (line,) = faults(GOOD + REDIS)
    assert "resume.store: needs the extra `redis`: pip install 'streamkit-llm[redis]'" in line
    monkeypatch.delitem(sys.modules, "streamkit.resume.redis_store")
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.delitem(sys.modules, "streamkit.resume.redis_client")
    with pytest.raises(UsageError, match=r"streamkit-llm\[redis\]"):
        store_of(configured("redis://127.0.0.1"))


def test_the_password_of_a_store_is_shown_nowhere():
    config = parse(GOOD + REDIS)
    assert "responses are kept in Redis, redis://127.0.0.1:6379/1" in describe(config)
    for text in (describe(config), repr(config), str(config.resume)):
        assert CANARY not in text


async def test_a_server_that_can_t_be_reached_is_a_remark():
    assert await look_at_store(parse(GOOD)) == ("", [])
    reason, (remark,) = await look_at_store(configured(f"redis://me:{CANARY}@127.0.0.1:{free_port()}"))
    assert reason == ""
    assert remark == "the store can't be reached; the gateway serves anyway, and retries"


async def test_a_server_with_a_password_that_is_not_ours_is_a_remark(server):
    _, (remark,) = await look_at_store(configured(server.url.replace("//", f"//me:{CANARY}@")))
    assert remark.startswith("the store refused the credentials or the command")


async def test_a_policy_that_evicts_answers_is_a_remark(server):
    assert await look_at_store(configured(server.url)) == ("", [])
    assert server.say("CONFIG", "SET", "maxmemory-policy", "volatile-lru") == "+OK"
    try:
        reason, (remark,) = await look_at_store(configured(server.url))
    finally:
        server.say("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert reason == ""
    assert "maxmemory-policy is volatile-lru" in remark


async def test_a_cluster_is_refused_with_a_sentence(tmp_path, servers):
    with running(
        servers("valkey").name, tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port())
    ) as cluster:
        reason, _ = await look_at_store(configured(cluster.url))
    assert "Redis Cluster" in reason
