//! What classes declare about shards.

use element::{FlowUse, ShardMode};

#[test]
fn declared_handlers_exist_and_can_be_read() {
    for class in elements::REGISTRY.iter().copied().flatten() {
        let (name, sharding) = (class.info.name, &class.info.shards);
        let handlers = class.handlers();
        for declared in sharding.sums.iter().chain(sharding.lists) {
            let exists = handlers.iter().any(|handler| handler.name == *declared && handler.is_read());
            assert!(exists, "{name} has no read handler `{declared}`");
        }
        let declares = !sharding.sums.is_empty() || !sharding.lists.is_empty();
        match sharding.mode {
            ShardMode::Never => {
                assert!(!declares && sharding.flows == FlowUse::Nothing, "{name} never runs in shards");
            }
            ShardMode::Independent | ShardMode::First => assert!(!declares, "{name} has no sums"),
            ShardMode::Sum | ShardMode::Divide => {}
        }
    }
}

/// Handlers with these names count packets, so of a class that runs in shards they add up, or a generator has them.
#[test]
fn counters_add_up() {
    for class in elements::REGISTRY.iter().copied().flatten() {
        let sharding = &class.info.shards;
        if matches!(sharding.mode, ShardMode::Never | ShardMode::First) {
            continue;
        }
        for handler in class.handlers().iter().filter(|handler| handler.is_read()) {
            let counts = ["count", "byte_count", "drops", "length", "queries", "responses", "fragments"];
            // The table of ARP entries is the same in every shard, and `length` of CheckLength an argument.
            let is_table = class.info.name.starts_with("ARP") && handler.name == "count";
            if counts.contains(&&*handler.name) && !is_table && class.info.name != "CheckLength" {
                let adds_up = sharding.sums.contains(&&*handler.name);
                assert!(adds_up, "{}.{} does not add up", class.info.name, handler.name);
            }
        }
    }
}
