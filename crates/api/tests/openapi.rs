//! The OpenAPI document in `docs/` equals the one generated from the table of operations.
//!
//! `UPDATE_DOCS=1 cargo test -p api --test openapi` writes it.

use std::collections::BTreeSet;
use std::path::Path;

use api::operation::TABLE;

#[test]
fn the_document_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let fresh = serde_json::to_string_pretty(&api::openapi::document()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &fresh).expect("the document is written");
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        api::openapi::text().expect("the embedded document") == found,
        "the program has another document"
    );
    assert!(found == fresh, "docs/openapi.json is stale: UPDATE_DOCS=1 cargo test -p api --test openapi");
}

#[test]
fn operations_have_distinct_names_and_routes() {
    let mut names = BTreeSet::new();
    let mut operations = BTreeSet::new();
    for entry in TABLE {
        assert!(names.insert(entry.name()), "two operations have the name {}", entry.name());
        assert!(
            operations.insert((entry.method().name(), entry.path())),
            "two operations are at {}",
            entry.path()
        );
        assert!(entry.summary().ends_with('.'), "{}: the summary is no sentence", entry.name());
    }
}

#[test]
fn every_reference_resolves() {
    fn check(value: &serde_json::Value, document: &serde_json::Value) {
        match value {
            serde_json::Value::Object(members) => {
                if let Some(target) = members.get("$ref").and_then(|target| target.as_str()) {
                    let pointer = target.strip_prefix('#').expect("a pointer into the document");
                    assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
                }
                members.values().for_each(|member| check(member, document));
            }
            serde_json::Value::Array(members) => members.iter().for_each(|member| check(member, document)),
            _ => {}
        }
    }
    let document = api::openapi::document();
    check(&document, &document);
}
