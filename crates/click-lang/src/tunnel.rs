//! Resolution of connections through the ports of compounds and groups, to connections between real elements.

use crate::Limits;
use crate::class::Link;
use crate::steps::{pause, pause_every};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Links that are checked or copied in a step.
pub(crate) const LINKS_A_STEP: usize = 64;

/// The role of an element of the flat list in connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlatKind {
    /// A real element, where connections end.
    Element,
    /// A compound or group. Packets sent to it leave at its input; packets sent to its output leave at it.
    Outer {
        /// Its inner input.
        input: usize,
        /// Its inner output.
        output: usize,
    },
    /// The input of a compound or group.
    Input {
        /// The compound or group.
        outer: usize,
    },
    /// The output of a compound or group.
    Output {
        /// The compound or group.
        outer: usize,
    },
    /// An element that could not be created; already reported.
    Failed,
}

/// An error at a port of a compound or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortError {
    /// The compound or group; for a misuse, its input or output.
    pub(crate) element: usize,
    /// The kind of error.
    pub(crate) what: PortErrorKind,
    /// The port.
    pub(crate) port: usize,
}

/// The kind of an error at a port of a compound or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortErrorKind {
    /// A connection to an input that does not exist.
    NoInput,
    /// A connection from an output that does not exist.
    NoOutput,
    /// The input has no connection.
    UnusedInput,
    /// The output has no connection.
    UnusedOutput,
    /// An output pseudo element is used as a source of packets.
    UsedAsOutput,
    /// An input pseudo element is used as a target of packets.
    UsedAsInput,
    /// The limit of steps or connections was reached.
    TooMany,
}

impl PortError {
    /// The message; `name` is the element's name.
    pub(crate) fn message(&self, name: &str) -> String {
        let port = self.port;
        match self.what {
            PortErrorKind::NoInput => format!("‘{name}’ has no input {port}"),
            PortErrorKind::NoOutput => format!("‘{name}’ has no output {port}"),
            PortErrorKind::UnusedInput => format!("‘{name}’ input {port} unused"),
            PortErrorKind::UnusedOutput => format!("‘{name}’ output {port} unused"),
            PortErrorKind::UsedAsOutput => format!("‘{name}’ used as output"),
            PortErrorKind::UsedAsInput => format!("‘{name}’ used as input"),
            PortErrorKind::TooMany => "too many connections through compound elements".into(),
        }
    }
}

/// Follows connections through compounds and groups.
pub(crate) struct Resolver<'r> {
    kinds: &'r [FlatKind],
    /// Sorted by source.
    links: Vec<Link>,
    /// Sorted by target.
    arrivals: Vec<Link>,
    problems: Vec<PortError>,
    steps: usize,
    connections: usize,
}

impl<'r> Resolver<'r> {
    /// Prepares the links between elements of these kinds, and checks them, in steps.
    pub(crate) async fn new(kinds: &'r [FlatKind], links: &[Link], limits: &Limits) -> Self {
        let mut ordered = links.to_vec();
        sorting::sort_by_key(&mut ordered, |link| link.from);
        pause().await;
        let mut arrivals = links.to_vec();
        sorting::sort_by_key(&mut arrivals, |link| link.to);
        pause().await;
        let mut resolver = Self {
            kinds,
            links: ordered,
            arrivals,
            problems: Vec::new(),
            steps: limits.tunnel_steps,
            connections: limits.connections,
        };
        resolver.check(links).await;
        resolver
    }

    /// The connections between real elements, each once, sorted by target and source.
    pub(crate) async fn resolve(&mut self) -> Vec<Link> {
        let mut found: Vec<Link> = Vec::new();
        let mut next = 0;
        while next < self.links.len() {
            pause().await;
            let from = self.links[next].from;
            let group = next..next + self.outgoing(from).len();
            next = group.end;
            if self.kinds[from.0] != FlatKind::Element {
                continue;
            }
            for index in group {
                let link = self.links[index];
                let targets = self.targets_of(link.to);
                if found.len() + targets.len() > self.connections {
                    self.too_many(from.0);
                    break;
                }
                found.extend(targets.into_iter().map(|to| Link { to, ..link }));
            }
        }
        pause().await;
        sorting::sort_by_key(&mut found, |link| (link.to, link.from));
        found.dedup_by_key(|link| (link.to, link.from));
        found
    }

    /// The errors found.
    pub(crate) fn into_problems(self) -> Vec<PortError> {
        self.problems
    }

    /// The links that leave an output port.
    fn outgoing(&self, from: (usize, usize)) -> &[Link] {
        let start = self.links.partition_point(|link| link.from < from);
        let count = self.links[start..].partition_point(|link| link.from == from);
        &self.links[start..start + count]
    }

    /// The links that enter an input port.
    fn incoming(&self, to: (usize, usize)) -> &[Link] {
        let start = self.arrivals.partition_point(|link| link.to < to);
        let count = self.arrivals[start..].partition_point(|link| link.to == to);
        &self.arrivals[start..start + count]
    }

    /// The port where packets leave that enter an input port of a compound, or its output. `None` for a real element,
    /// and for an input, which can't be entered.
    fn passage(&self, to: (usize, usize)) -> Option<(usize, usize)> {
        match self.kinds[to.0] {
            FlatKind::Outer { input, .. } => Some((input, to.1)),
            FlatKind::Output { outer } => Some((outer, to.1)),
            FlatKind::Element | FlatKind::Input { .. } | FlatKind::Failed => None,
        }
    }

    /// The ports of real elements that packets sent to `to` reach.
    fn targets_of(&mut self, to: (usize, usize)) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut open = alloc::vec![to];
        while let Some(to) = open.pop() {
            if self.kinds[to.0] == FlatKind::Element {
                found.push(to);
                continue;
            }
            let Some(passage) = self.passage(to) else { continue };
            if !seen.insert(passage) {
                continue;
            }
            let count = self.outgoing(passage).len() + 1;
            if self.steps < count {
                self.steps = 0;
                self.too_many(passage.0);
                return Vec::new();
            }
            self.steps -= count;
            open.extend(self.outgoing(passage).iter().map(|link| link.to));
        }
        found
    }

    fn too_many(&mut self, element: usize) {
        if !self.problems.iter().any(|problem| problem.what == PortErrorKind::TooMany) {
            self.problems.push(PortError { element, port: 0, what: PortErrorKind::TooMany });
        }
    }

    /// Finds ports of compounds and groups that are connected on one side only, and inputs and outputs used in the
    /// wrong direction. Follows each link in turn as far as its ends lead, as Click does, so that errors appear in the
    /// same order.
    async fn check(&mut self, links: &[Link]) {
        let mut seen = BTreeSet::new();
        let mut open = Vec::new();
        for (done, link) in links.iter().enumerate() {
            pause_every(LINKS_A_STEP, done).await;
            if self.kinds[link.from.0] == FlatKind::Element && self.kinds[link.to.0] == FlatKind::Element {
                continue;
            }
            for (end, output) in [(link.from, true), (link.to, false)] {
                open.push(end);
                while let Some(end) = open.pop() {
                    self.check_end(end, output, &mut seen, &mut open);
                }
            }
        }
    }

    /// Checks one end of a link, an output or an input, and pushes the ends that it leads to, first one last.
    fn check_end(
        &mut self,
        (element, port): (usize, usize),
        output: bool,
        seen: &mut BTreeSet<(usize, usize, bool)>,
        open: &mut Vec<(usize, usize)>,
    ) {
        // The other side of the passage, and the error if nothing is connected there.
        let (beyond, owner, unconnected) = match (self.kinds[element], output) {
            (FlatKind::Outer { input, .. }, false) => (input, element, PortErrorKind::NoInput),
            (FlatKind::Input { outer }, true) => (outer, outer, PortErrorKind::UnusedInput),
            (FlatKind::Output { outer }, false) => (outer, outer, PortErrorKind::UnusedOutput),
            (FlatKind::Outer { output, .. }, true) => (output, element, PortErrorKind::NoOutput),
            (FlatKind::Input { .. }, false) => {
                return self.problems.push(PortError { element, port, what: PortErrorKind::UsedAsInput });
            }
            (FlatKind::Output { .. }, true) => {
                return self.problems.push(PortError { element, port, what: PortErrorKind::UsedAsOutput });
            }
            (FlatKind::Element | FlatKind::Failed, _) => return,
        };
        if !seen.insert((element, port, output)) {
            return;
        }
        let before = open.len();
        if output {
            open.extend(self.incoming((beyond, port)).iter().rev().map(|link| link.from));
        } else {
            open.extend(self.outgoing((beyond, port)).iter().rev().map(|link| link.to));
        }
        if open.len() == before {
            self.problems.push(PortError { element: owner, port, what: unconnected });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::SourceSpan;
    use crate::steps::complete;

    /// Element 0 is a compound with input 1 and output 2; elements from 3 on are real.
    fn kinds() -> Vec<FlatKind> {
        let compound = [
            FlatKind::Outer { input: 1, output: 2 },
            FlatKind::Input { outer: 0 },
            FlatKind::Output { outer: 0 },
        ];
        compound.into_iter().chain([FlatKind::Element; 4]).collect()
    }

    type Outcome = (Vec<(usize, usize)>, Vec<(usize, PortErrorKind)>);

    fn resolve(links: &[(usize, usize)]) -> Outcome {
        let link =
            |&(from, to): &(usize, usize)| Link { from: (from, 0), to: (to, 0), span: SourceSpan::default() };
        let links: Vec<Link> = links.iter().map(link).collect();
        let kinds = kinds();
        let mut resolver = complete(Resolver::new(&kinds, &links, &Limits::default()));
        let found = complete(resolver.resolve()).iter().map(|link| (link.from.0, link.to.0)).collect();
        (found, resolver.into_problems().iter().map(|problem| (problem.element, problem.what)).collect())
    }

    #[test]
    fn connections_go_through_compounds() {
        let check = |links: &[_], expected: &[_], problems: &[_]| {
            assert_eq!(resolve(links), (expected.to_vec(), problems.to_vec()), "{links:?}");
        };
        check(&[(3, 4)], &[(3, 4)], &[]);
        check(&[(3, 0), (1, 2), (0, 4)], &[(3, 4)], &[]);
        check(&[(3, 0), (5, 0), (1, 4), (1, 6)], &[(3, 4), (5, 4), (3, 6), (5, 6)], &[]);
        check(&[(3, 0)], &[], &[(0, PortErrorKind::NoInput)]);
        check(&[(1, 4)], &[], &[(0, PortErrorKind::UnusedInput)]);
        check(&[(0, 4)], &[], &[(0, PortErrorKind::NoOutput)]);
        check(&[(4, 2)], &[], &[(0, PortErrorKind::UnusedOutput)]);
        check(&[(2, 1)], &[], &[(2, PortErrorKind::UsedAsOutput), (1, PortErrorKind::UsedAsInput)]);
        // The output leads back to the input: nothing leaves, and the search still ends.
        check(&[(3, 0), (1, 2), (0, 0)], &[], &[]);
    }
}
