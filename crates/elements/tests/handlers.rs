//! What writes to handlers change: every write handler of every class declares it.

use element::{HandlerKind, WriteEffect};
use std::fmt::Write;
use std::path::Path;

/// Each write handler that classes have, with what it changes. A new one is listed here once its author has decided:
/// whether a restart of its box loses what was written depends on it.
#[test]
fn every_write_handler_says_what_it_changes() {
    let mut list = String::new();
    let mut line = |class: &str, handler: &str, effect: WriteEffect| {
        let effect = format!("{effect:?}").to_lowercase();
        writeln!(list, "{effect:8}{class}.{handler}").unwrap();
    };
    for class in elements::REGISTRY.iter().copied().flatten() {
        for handler in class.handlers().iter().filter(|handler| handler.kind == HandlerKind::Write) {
            line(class.info.name, &handler.name, handler.effect);
        }
        if let Some((prefix, _)) = class.numbered {
            line(class.info.name, &format!("{prefix}N"), WriteEffect::Setting);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/write_handlers.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &list).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(list, committed, "UPDATE_DOCS=1 lists what the classes declare");
}
