//! The list of reasons is append-only, and each has its texts.

use reason::{Name, Reason, is_user_name};
use std::collections::BTreeSet;

/// The names of earlier versions, in order. A new reason adds a line at the end; no other line may change, since names
/// stand in metrics, dashboards and alerts.
const COMMITTED: &str = include_str!("../reasons.txt");

#[test]
fn the_list_is_append_only() {
    let names: Vec<&str> = Reason::all().map(Reason::name).collect();
    let committed: Vec<&str> = COMMITTED.lines().collect();
    let same = names.len().min(committed.len());
    assert_eq!(names[..same], committed[..same], "a reason was removed, renamed or moved");
    assert_eq!(names.len(), committed.len(), "add new reasons at the end of reasons.txt");
}

#[test]
fn each_reason_has_a_name_a_sentence_and_a_remedy() {
    let mut seen = BTreeSet::new();
    for reason in Reason::all() {
        let name = reason.name();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(seen.insert(name) && seen.insert(reason.summary()), "{name} is there twice");
        assert_eq!(Reason::find(name), Some(reason));
        for text in [reason.summary(), reason.remedy()] {
            assert!(
                text.ends_with('.') && text.starts_with(|c: char| c.is_ascii_uppercase()),
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn names_from_elsewhere_are_checked() {
    assert_eq!(Name::parse("denied"), Name::Listed(Reason::DENIED));
    assert_eq!(Name::parse("user:limiter/too_many"), Name::User("user:limiter/too_many"));
    for text in ["", "denied ", "user:", "user:a", "user:a/", "user:/b", "user:a/b/c", "user:A/b", "x\"} 1\n"]
    {
        assert_eq!(Name::parse(text), Name::Listed(Reason::UNDECLARED), "{text:?}");
    }
    assert!(!is_user_name(&format!("user:a/{}", "b".repeat(64))));
}

#[test]
fn reasons_of_user_functions_have_numbers_of_their_own() {
    let reason = Reason::user(3);
    assert_eq!((reason.user_number(), reason.name()), (Some(3), "undeclared"));
    assert_eq!(Reason::DENIED.user_number(), None);
}
