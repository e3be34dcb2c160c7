//! Books kept outside the elements: what goes in and out at ports, and the packets that the pool has given out.

use std::collections::BTreeMap;

use element::Fate;

use super::Run;

/// Compares an ended run's own accounts with the counters of ports and the pool. Returns the differences.
pub(crate) fn check(run: &Run) -> Vec<String> {
    let mut failures = Vec::new();
    let (mut waiting, mut templates) = (0, 0);
    for account in run.router.element_accounts() {
        let (name, class) = (&account.element, account.class);
        let Some(held) = account.waiting else {
            failures.push(format!("{name} :: {class} is being called"));
            continue;
        };
        if account.inflow() != account.outflow() {
            failures.push(format!("{name} :: {class}: the sides of its account differ: {account:?}"));
        }
        if held.packets > 0 && held.oldest.is_none() {
            failures.push(format!("{name} :: {class}: since when its packets wait is unknown"));
        }
        waiting += held.packets;
        templates += held.templates;
    }
    let (account, live) = (run.router.account(), run.router.pool().packets() as u64);
    if live != waiting + templates {
        failures.push(format!("{live} packets are in use: {waiting} wait, {templates} are templates"));
    }
    if account.waiting != waiting || account.inflow() != account.outflow() {
        failures.push(format!("the sides of the router's account differ: {account:?}"));
    }
    let by_connection: u64 = run.router.discards().iter().map(|discard| discard.packets).sum();
    let discarded: u64 = run.router.element_accounts().map(|one| one.fates.of(Fate::Discarded)).sum();
    if by_connection != discarded {
        failures.push(format!("{discarded} packets were discarded, {by_connection} by connection"));
    }
    failures
}

/// The fates that occurred in a run, by class. Of `Lost`, only losses for a reason that the class declares.
pub(crate) fn occurred(run: &Run) -> BTreeMap<&'static str, Vec<Fate>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for account in run.router.element_accounts() {
        let fates = found.entry(account.class).or_default();
        fates.extend(Fate::COUNTED.iter().filter(|fate| account.fates.of(**fate) > 0));
        let info = elements::class(account.class).map(|class| class.info);
        let is_declared =
            |reason: &str| info.is_some_and(|info| info.drops.iter().any(|one| one.name() == reason));
        if account.lost.iter().any(|(reason, packets)| *packets > 0 && is_declared(reason)) {
            fates.push(Fate::Lost);
        }
        if account.waiting.is_some_and(|waiting| waiting.packets > 0) {
            fates.push(Fate::Waiting);
        }
    }
    found
}
