//! Claims: which objects the operations in progress use, so that no operation builds on what another may yet take back.

use api::Subject;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A claim of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    subject: Subject,
    is_exclusive: bool,
}

impl Claim {
    /// A claim by an operation that changes the object. No other operation may use it.
    pub(super) fn change(subject: impl Into<Subject>) -> Self {
        Self { subject: subject.into(), is_exclusive: true }
    }

    /// A claim by an operation that relies on the object, which may not change meanwhile.
    pub(super) fn rely(subject: impl Into<Subject>) -> Self {
        Self { subject: subject.into(), is_exclusive: false }
    }
}

/// The claims in force.
#[derive(Debug, Default)]
pub(super) struct Claims {
    held: Mutex<BTreeMap<Subject, Hold>>,
    freed: Condvar,
}

#[derive(Debug)]
enum Hold {
    /// One operation changes the object. This is the operation's own subject.
    Changed(Subject),
    /// This many operations rely on the object.
    Relied(usize),
}

/// An object that another operation uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// The object.
    pub(super) subject: Subject,
    /// The subject of the operation that changes it. `None` if others rely on it.
    pub(super) changed_by: Option<Subject>,
}

/// Claims, which end when this is dropped.
#[derive(Debug)]
pub(super) struct ClaimGuard<'a> {
    claims: &'a Claims,
    list: BTreeMap<Subject, bool>,
}

impl Claims {
    /// Takes all claims of an operation about `subject` together, so that operations cannot wait for each other. Waits
    /// at most for `timeout`. `list` is computed again after each wait, because what other operations have done may
    /// change it.
    pub(super) fn take(
        &self,
        subject: &Subject,
        timeout: Duration,
        list: &dyn Fn() -> Vec<Claim>,
    ) -> Result<ClaimGuard<'_>, Conflict> {
        let until = Instant::now() + timeout;
        let mut held = self.held();
        loop {
            let mut wanted = BTreeMap::new();
            for claim in list() {
                *wanted.entry(claim.subject).or_insert(false) |= claim.is_exclusive;
            }
            let Some(conflict) = conflict(&held, &wanted) else {
                for (object, is_exclusive) in &wanted {
                    match (held.get_mut(object), is_exclusive) {
                        (Some(Hold::Relied(count)), false) => *count += 1,
                        (_, false) => drop(held.insert(object.clone(), Hold::Relied(1))),
                        (_, true) => drop(held.insert(object.clone(), Hold::Changed(subject.clone()))),
                    }
                }
                return Ok(ClaimGuard { claims: self, list: wanted });
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(conflict);
            }
            held = self.freed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The subject of the operation that changes an object.
    pub(super) fn changed_by(&self, subject: &Subject) -> Option<Subject> {
        match self.held().get(subject)? {
            Hold::Changed(by) => Some(by.clone()),
            Hold::Relied(_) => None,
        }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Subject, Hold>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn conflict(held: &BTreeMap<Subject, Hold>, wanted: &BTreeMap<Subject, bool>) -> Option<Conflict> {
    wanted.iter().find_map(|(subject, is_exclusive)| match held.get(subject)? {
        Hold::Changed(by) => Some(Conflict { subject: subject.clone(), changed_by: Some(by.clone()) }),
        Hold::Relied(_) if *is_exclusive => Some(Conflict { subject: subject.clone(), changed_by: None }),
        Hold::Relied(_) => None,
    })
}

impl Drop for ClaimGuard<'_> {
    fn drop(&mut self) {
        let mut held = self.claims.held();
        for subject in self.list.keys() {
            match held.get_mut(subject) {
                Some(Hold::Relied(count)) if *count > 1 => *count -= 1,
                _ => drop(held.remove(subject)),
            }
        }
        drop(held);
        self.claims.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_object_belongs_to_one_operation() {
        let claims = Claims::default();
        let [fw, nat, lan] = ["box/fw", "box/nat", "switch/lan"].map(|text| text.parse::<Subject>().unwrap());
        let take = |own: &Subject, list: &[Claim]| claims.take(own, Duration::ZERO, &|| list.to_vec());
        let first = take(&fw, &[Claim::change(fw.clone()), Claim::rely(lan.clone())]).unwrap();
        // Two boxes may be created at one switch at the same time.
        let second =
            take(&nat, &[Claim::change(nat.clone()), Claim::rely(lan.clone()), Claim::rely(nat.clone())]);
        let second = second.unwrap();
        let used = Conflict { subject: lan.clone(), changed_by: None };
        assert_eq!(take(&lan, &[Claim::change(lan.clone())]).unwrap_err(), used);
        drop(first);
        assert_eq!(take(&lan, &[Claim::change(lan.clone())]).unwrap_err(), used);
        let changed = Conflict { subject: nat.clone(), changed_by: Some(nat.clone()) };
        assert_eq!(take(&fw, &[Claim::change(fw.clone()), Claim::rely(nat.clone())]).unwrap_err(), changed);
        drop(take(&fw, &[Claim::change(fw.clone())]).expect("a refused operation holds nothing"));
        drop(second);
        drop(take(&lan, &[Claim::change(lan.clone())]).unwrap());
        assert!(claims.held().is_empty());
    }

    #[test]
    fn an_operation_waits_for_another() {
        let claims = Claims::default();
        let fw: Subject = "box/fw".parse().unwrap();
        let list = || vec![Claim::change(fw.clone())];
        let first = claims.take(&fw, Duration::ZERO, &list).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.take(&fw, Duration::from_secs(60), &list).is_ok());
            drop(first);
            assert!(waiting.join().unwrap());
        });
    }
}
