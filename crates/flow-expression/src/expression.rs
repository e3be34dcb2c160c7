//! Translates expressions of `IPClassifier` into matches.

use std::collections::BTreeMap;
use std::fmt;

use classify::{Base, Expression, NoNames, Relation, RuleDiagnostic, Test, classifier_rules};
use flow_table::{Field, Match};
use packet::protocol::{ICMP, ICMP6, SCTP, TCP, UDP};

/// Matches of one expression. Each becomes a flow entry, and a short expression can expand to exponentially many.
const MAX_MATCHES: usize = 256;

/// Conjunctions while an expression is translated, of which none contains another.
const MAX_CONJUNCTIONS: usize = 4 * MAX_MATCHES;

/// Comparisons of conjunctions while an expression is translated. They take a tenth of a second.
const MAX_COMPARISONS: usize = 2_000_000;

/// The tests of the fragment offset that the rule language adds so that a packet has ports.
const FRAGMENT_OFFSET: u32 = 0x1fff;
/// The tests of `ip frag`.
const FRAGMENT: u32 = 0x3fff;

/// The reason why an expression has no matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionError {
    /// The expression is malformed.
    Syntax(RuleDiagnostic),
    /// The expression tests something that is not a match field.
    NoMatchField(&'static str),
    /// The expression needs more matches than one expression may.
    TooManyMatches,
    /// No packet can meet the expression.
    Contradiction,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(problem) => formatter.write_str(&problem.kind.explanation()),
            Self::NoMatchField(what) => write!(
                formatter,
                "flow tables can't match {what}; they match Ethernet and IP addresses, the IP protocol, DSCP and ECN, \
                 ‘ip frag’, ports, and ICMP types and codes"
            ),
            Self::TooManyMatches => write!(
                formatter,
                "the condition needs more than {MAX_MATCHES} flow entries; split it, or negate and compare less"
            ),
            Self::Contradiction => formatter.write_str("no packet can meet the condition"),
        }
    }
}

impl std::error::Error for ExpressionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Syntax(problem) => Some(problem),
            _ => None,
        }
    }
}

impl ExpressionError {
    /// Where the expression is wrong: the number of characters before the word. `None` if the whole expression is, or if the
    /// word occurs at several places.
    #[must_use]
    pub fn place(&self, expression: &str) -> Option<usize> {
        let Self::Syntax(problem) = self else { return None };
        let words = problem.kind.words().filter(|words| !words.is_empty())?;
        let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-');
        let (first, last) =
            (words.chars().next().is_some_and(is_part), words.chars().last().is_some_and(is_part));
        let mut places = expression.match_indices(words).filter(|(at, _)| {
            let (before, rest) = expression.split_at(*at);
            let after = rest.get(words.len()..).unwrap_or_default();
            !(first && before.ends_with(is_part) || last && after.starts_with(is_part))
        });
        let (at, _) = places.next()?;
        match places.next() {
            None => expression.get(..at).map(|before| before.chars().count()),
            Some(_) => None,
        }
    }
}

/// The matches that together match the packets that meet an expression of `IPClassifier`, such as
/// `tcp dst port 80 or 443`.
///
/// Conditions on the IP header and on ports match IPv4 and IPv6, unless they name IPv4 addresses or ICMP. Conditions on
/// ports also match later fragments whose ports are known (see [`flow_table::Fragments`]). Otherwise a packet that lacks a
/// field meets no condition on it.
///
/// # Errors
/// See [`ExpressionError`].
pub fn matches_of(expression: &str) -> Result<Vec<Match>, ExpressionError> {
    let (rules, problems) = classifier_rules(&[expression], &NoNames);
    if let Some(problem) = problems.into_iter().find(|problem| !problem.is_warning()) {
        return Err(ExpressionError::Syntax(problem));
    }
    let mut matches = Vec::new();
    let mut comparisons = MAX_COMPARISONS;
    for rule in rules {
        for conjunction in lower(&rule.condition, true, &mut comparisons)?.0 {
            conjunction.matches(&mut matches)?;
        }
    }
    let mut distinct: Vec<Match> = Vec::with_capacity(matches.len());
    for (at, matching) in matches.iter().enumerate() {
        let is_covered = distinct.iter().any(|other| other.contains(matching))
            || matches[at + 1..].iter().any(|other| other.contains(matching) && other != matching);
        if !is_covered {
            distinct.push(*matching);
        }
    }
    match distinct.len() {
        0 => Err(ExpressionError::Contradiction),
        count if count > MAX_MATCHES => Err(ExpressionError::TooManyMatches),
        _ => Ok(distinct),
    }
}

/// Some bits of a header word: value and mask.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bits {
    value: u32,
    mask: u32,
}

impl Bits {
    fn intersect(self, other: Bits) -> Option<Bits> {
        let conflict = (self.value ^ other.value) & self.mask & other.mask;
        (conflict == 0).then_some(Bits { value: self.value | other.value, mask: self.mask | other.mask })
    }

    /// The bits of `mask` shifted down; `None` if none is tested.
    fn field(self, shift: u32, bits: u32) -> Option<(u128, u128)> {
        let ones = u32::MAX >> (32 - bits);
        let mask = self.mask >> shift & ones;
        (mask != 0).then(|| (u128::from(self.value >> shift & ones), u128::from(mask)))
    }
}

/// A condition that all of some words have some bits. No word has conflicting bits.
#[derive(Clone, Default, PartialEq, Eq)]
struct Conjunction {
    words: BTreeMap<(Base, u16), Bits>,
}

impl Conjunction {
    fn one(base: Base, offset: u16, bits: Bits) -> Self {
        Self { words: BTreeMap::from([((base, offset), bits)]) }
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        let mut both = self.clone();
        for (place, bits) in &other.words {
            let merged = both.words.get(place).map_or(Some(*bits), |known| known.intersect(*bits))?;
            both.words.insert(*place, merged);
        }
        Some(both)
    }

    /// Whether every packet that meets `other` meets this.
    fn contains(&self, other: &Self) -> bool {
        self.words.iter().all(|(place, bits)| {
            other.words.get(place).is_some_and(|inner| {
                bits.mask & !inner.mask == 0 && (bits.value ^ inner.value) & bits.mask == 0
            })
        })
    }

    fn word(&self, base: Base, offset: u16) -> Bits {
        self.words.get(&(base, offset)).copied().unwrap_or(Bits { value: 0, mask: 0 })
    }

    /// Adds the matches of the packets that meet all conditions.
    fn matches(&self, matches: &mut Vec<Match>) -> Result<(), ExpressionError> {
        let link = self.link()?;
        let [first, fragment, third] = [0, 4, 8].map(|offset| self.word(Base::Network, offset));
        let [source, destination] = [12, 16].map(|offset| self.word(Base::Network, offset));
        let transport = self.word(Base::Transport, 0);
        if first.mask & 0x0f00_0000 != 0 {
            return Err(ExpressionError::NoMatchField("the length of the IP header"));
        }
        if first.mask & 0xffff != 0 {
            return Err(ExpressionError::NoMatchField("the length of the IP packet"));
        }
        if third.mask & 0xff00_0000 != 0 {
            return Err(ExpressionError::NoMatchField("the time to live"));
        }
        let known = [0, 4, 8, 12, 16];
        if self.words.keys().any(|(base, offset)| match base {
            Base::Network => !known.contains(offset),
            Base::Transport => *offset != 0,
            Base::Link => false,
        }) {
            return Err(ExpressionError::NoMatchField("this part of the headers (TCP flags, payload)"));
        }
        if self.words.keys().all(|(base, _)| *base == Base::Link) {
            matches.push(link);
            return Ok(());
        }
        let protocol = third.field(16, 8);
        let admits = |number: u8| protocol.is_none_or(|(value, mask)| u128::from(number) & mask == value);
        let version = first.field(28, 4);
        for (eth_type, number) in [(0x0800, 4), (0x86dd, 6)] {
            if version.is_some_and(|(value, mask)| number & mask != value) {
                continue;
            }
            let is_ip4 = number == 4;
            if !is_ip4 && source.mask | destination.mask != 0 {
                continue;
            }
            let mut base = add(link, Field::EthType, Some((eth_type, 0xffff)));
            base = add(base, Field::IpDscp, first.field(18, 6));
            base = add(base, Field::IpEcn, first.field(16, 2));
            base = add(base, Field::Ipv4Src, source.field(0, 32));
            base = add(base, Field::Ipv4Dst, destination.field(0, 32));
            base = add(base, Field::IpFragment, fragment.field(0, 1));
            if transport.mask == 0 {
                let is_icmp_only = protocol == Some((ICMP.into(), 0xff));
                if is_ip4 || !is_icmp_only {
                    matches.push(add(base, Field::IpProto, protocol));
                }
                continue;
            }
            for (number, source, destination) in [
                (TCP, Field::TcpSrc, Field::TcpDst),
                (UDP, Field::UdpSrc, Field::UdpDst),
                (SCTP, Field::SctpSrc, Field::SctpDst),
            ] {
                if admits(number) {
                    let ports = add(base, Field::IpProto, Some((number.into(), 0xff)));
                    let ports = add(ports, source, transport.field(16, 16));
                    matches.push(add(ports, destination, transport.field(0, 16)));
                }
            }
            if is_ip4 && admits(ICMP) && transport.mask & 0xffff == 0 {
                let icmp = add(base, Field::IpProto, Some((ICMP.into(), 0xff)));
                let icmp = add(icmp, Field::Icmpv4Type, transport.field(24, 8));
                matches.push(add(icmp, Field::Icmpv4Code, transport.field(16, 8)));
            }
            let others = [TCP, UDP, SCTP, ICMP, ICMP6];
            if protocol.is_some_and(|(value, mask)| mask == 0xff && !others.contains(&(value as u8))) {
                return Err(ExpressionError::NoMatchField("the header of this protocol"));
            }
        }
        Ok(())
    }

    /// The match of the Ethernet addresses.
    fn link(&self) -> Result<Match, ExpressionError> {
        let (mut value, mut mask) = (0u128, 0u128);
        for ((_, offset), bits) in self.words.iter().filter(|((base, _), _)| *base == Base::Link) {
            // The word's place in the first twelve bytes, of which the first is the highest.
            let Some(shift) = 64u32.checked_sub(8 * u32::from(*offset)) else {
                // Words at offset 10 have two bytes of the address in their upper half.
                let down = 8 * u32::from(*offset) - 64;
                value |= u128::from(bits.value >> down.min(31));
                mask |= u128::from(bits.mask >> down.min(31));
                continue;
            };
            value |= u128::from(bits.value) << shift;
            mask |= u128::from(bits.mask) << shift;
        }
        let ones = (1u128 << 48) - 1;
        let field = |shift: u32| Some((value >> shift & ones, mask >> shift & ones));
        Ok(add(add(Match::any(), Field::EthDst, field(48)), Field::EthSrc, field(0)))
    }
}

/// Adds a field whose prerequisites the match has, if bits of it are tested.
fn add(matching: Match, field: Field, bits: Option<(u128, u128)>) -> Match {
    let Some((value, mask)) = bits else { return matching };
    matching.with_masked(field, value & mask, mask).unwrap_or(matching)
}

/// Conjunctions of which a packet meets at least one, none of which contains another.
#[derive(Default)]
struct Disjunction(Vec<Conjunction>);

impl Disjunction {
    /// Every packet meets it.
    fn always() -> Self {
        Self(vec![Conjunction::default()])
    }

    /// Adds a conjunction, unless one that is there contains it. Removes those that it contains.
    fn add(&mut self, new: Conjunction, comparisons: &mut usize) -> Result<(), ExpressionError> {
        let left = comparisons.checked_sub(1 + self.0.len());
        *comparisons = left.ok_or(ExpressionError::TooManyMatches)?;
        if self.0.iter().any(|old| old.contains(&new)) {
            return Ok(());
        }
        self.0.retain(|old| !new.contains(old));
        self.0.push(new);
        if self.0.len() > MAX_CONJUNCTIONS {
            return Err(ExpressionError::TooManyMatches);
        }
        Ok(())
    }
}

/// The conjunctions of which a packet meets at least one if it meets the expression; its negation if not `wanted`. `comparisons` is
/// how many are left.
fn lower(
    expression: &Expression,
    wanted: bool,
    comparisons: &mut usize,
) -> Result<Disjunction, ExpressionError> {
    match expression {
        Expression::Constant(value) if *value == wanted => Ok(Disjunction::always()),
        Expression::Constant(_) => Ok(Disjunction::default()),
        Expression::Test(test) => lower_test(test, wanted).map(Disjunction),
        Expression::Not(inner) => lower(inner, !wanted, comparisons),
        Expression::All(parts) if wanted => lower_all(parts, wanted, comparisons),
        Expression::All(parts) => lower_any(parts, wanted, comparisons),
        Expression::Any(parts) if wanted => lower_any(parts, wanted, comparisons),
        Expression::Any(parts) => lower_all(parts, wanted, comparisons),
        Expression::Choose(parts) => {
            let [condition, yes, no] = &**parts;
            let mut either = Disjunction::default();
            for (holds, then) in [(true, yes), (false, no)] {
                let condition = lower(condition, holds, comparisons)?;
                let then = lower(then, wanted, comparisons)?;
                add_both(&mut either, &condition, &then, comparisons)?;
            }
            Ok(either)
        }
    }
}

fn lower_all(
    parts: &[Expression],
    wanted: bool,
    comparisons: &mut usize,
) -> Result<Disjunction, ExpressionError> {
    let mut all = Disjunction::always();
    for part in parts {
        let part = lower(part, wanted, comparisons)?;
        let before = std::mem::take(&mut all);
        add_both(&mut all, &before, &part, comparisons)?;
    }
    Ok(all)
}

fn lower_any(
    parts: &[Expression],
    wanted: bool,
    comparisons: &mut usize,
) -> Result<Disjunction, ExpressionError> {
    let mut any = Disjunction::default();
    for part in parts {
        for new in lower(part, wanted, comparisons)?.0 {
            any.add(new, comparisons)?;
        }
    }
    Ok(any)
}

/// Adds what meets both.
fn add_both(
    to: &mut Disjunction,
    one: &Disjunction,
    other: &Disjunction,
    comparisons: &mut usize,
) -> Result<(), ExpressionError> {
    for left in &one.0 {
        for right in &other.0 {
            *comparisons = comparisons.checked_sub(1).ok_or(ExpressionError::TooManyMatches)?;
            if let Some(both) = left.intersect(right) {
                to.add(both, comparisons)?;
            }
        }
    }
    Ok(())
}

/// The conjunctions of a test: one each for the values that first differ, or suffice, at one bit.
fn lower_test(test: &Test, wanted: bool) -> Result<Vec<Conjunction>, ExpressionError> {
    let holds = test.negated != wanted;
    let (value, mask) = (test.value << test.shift, test.mask << test.shift);
    let one =
        |value: u32, mask: u32| Conjunction::one(test.base, test.offset, Bits { value: value & mask, mask });
    if test.base == Base::Network && test.offset == 4 {
        return match (mask, test.relation) {
            // Ports of later fragments are those of the first one, so this is no restriction.
            (FRAGMENT_OFFSET, Relation::Equal) if value == 0 => {
                Ok(if holds { vec![Conjunction::default()] } else { Vec::new() })
            }
            (FRAGMENT, Relation::Equal) if value == 0 => Ok(vec![one(u32::from(!holds), 1)]),
            _ => Err(ExpressionError::NoMatchField("the identification and fragment offset")),
        };
    }
    if mask == 0 {
        let is_met = (test.relation == Relation::Equal) == holds;
        return Ok(if is_met { vec![Conjunction::default()] } else { Vec::new() });
    }
    let bits = (0..32).rev().map(|bit| 1u32 << bit).filter(|bit| mask & bit != 0);
    // The bits of the mask from `bit` up.
    let down_to = |bit: u32| mask & !(bit - 1);
    let differing = |from: Option<bool>| {
        let bits = bits.clone().filter(move |bit| from.is_none_or(|set| (value & bit != 0) == set));
        bits.map(move |bit| one(value ^ bit, down_to(bit)))
    };
    Ok(match (test.relation, holds) {
        (Relation::Equal, true) => vec![one(value, mask)],
        (Relation::Equal, false) => differing(None).collect(),
        // Greater: at the first bit that differs, the value has a zero.
        (Relation::Greater, true) => differing(Some(false)).collect(),
        (Relation::Greater, false) => differing(Some(true)).chain([one(value, mask)]).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition_text;
    use classify::{Headers, Program};
    use flow_table::{Ingress, Key};
    use random::Random;

    #[test]
    fn errors_are_at_their_words() {
        for (expression, place) in [
            ("tcp dst prot 80", Some(8)),
            ("ip proto tcp && garbage", Some(16)),
            ("udp dst port 99999 or tcp", Some(4)),
            ("(tcp", None),
            ("foo or foo", None),
            ("food or foo.bar or foo", Some(0)),
            ("é or tcp", Some(0)),
            ("tcp or é", Some(7)),
            ("tcp and tcp opt syn", None),
        ] {
            let error = matches_of(expression).expect_err(expression);
            assert_eq!(error.place(expression), place, "{expression}: {error}");
        }
    }

    #[test]
    fn conditions_become_the_expected_matches() {
        let matches = matches_of("tcp dst port 80 or 443").unwrap();
        let text: Vec<_> = matches.iter().map(|matching| format!("{matching:?}")).collect();
        assert_eq!(
            text,
            [
                "{EthType: 0x800, IpProto: 0x6, TcpDst: 0x50}",
                "{EthType: 0x86dd, IpProto: 0x6, TcpDst: 0x50}",
                "{EthType: 0x800, IpProto: 0x6, TcpDst: 0x1bb}",
                "{EthType: 0x86dd, IpProto: 0x6, TcpDst: 0x1bb}",
            ]
        );
        let count = |text: &str| matches_of(text).unwrap().len();
        assert_eq!((count("all"), count("src host 10.0.0.1"), count("icmp type echo")), (1, 1, 1));
        assert_eq!((count("udp"), count("not tcp"), count("tcp src port > 1023")), (2, 16, 12));
        assert_eq!(count("ether src 02:00:00:00:00:01"), 1);
    }

    #[test]
    fn what_has_no_match_field_is_refused() {
        let error = |text: &str| matches_of(text).unwrap_err().to_string();
        assert!(error("ip ttl 3").contains("the time to live"));
        assert!(error("tcp opt syn").contains("TCP flags"));
        assert!(error("ip id 7").contains("identification"));
        assert!(error("tcp and udp").contains("no packet"));
        assert!(error("tcp prot").contains('‘'), "{}", error("tcp prot"));
        let many: Vec<_> = (1..300).map(|port| format!("tcp port {port}")).collect();
        assert!(error(&many.join(" or ")).contains("256"));
        // Few matches, after many comparisons.
        let all = vec![format!("({})", many[..99].join(" or ")); 99].join(" and ");
        assert_eq!(matches_of(&all).unwrap_err(), ExpressionError::TooManyMatches);
    }

    /// A random expression over quantities of which few values occur.
    fn expression(random: &mut Random, depth: u32) -> String {
        let number = random.below(4);
        match random.below(if depth == 0 { 8 } else { 12 }) {
            0 => format!("src host 10.0.0.{number}"),
            1 => format!("dst net 10.0.0.{}/30", number * 4),
            2 => ["tcp", "udp", "icmp", "ip proto 47"][number as usize].into(),
            3 => format!("tcp src port {number}"),
            4 => format!("udp dst port > {number}"),
            5 => format!("port {number}"),
            6 => format!("ip dscp {number}"),
            7 => format!("icmp type {number}"),
            8 => format!("not ({})", expression(random, depth - 1)),
            9 | 10 => format!("({}) and ({})", expression(random, depth - 1), expression(random, depth - 1)),
            _ => format!("({}) or ({})", expression(random, depth - 1), expression(random, depth - 1)),
        }
    }

    /// The matches of an expression match the packets for which the rule language holds.
    #[test]
    fn matches_agree_with_the_rule_language() {
        let mut random = Random::new(5);
        let (mut checked, mut met, mut stated) = (0, 0, 0);
        for _ in 0..200 {
            let text = expression(&mut random, 2);
            let matches = match matches_of(&text) {
                Ok(matches) => matches,
                Err(ExpressionError::Contradiction) => Vec::new(),
                Err(ExpressionError::TooManyMatches) => continue,
                Err(error) => panic!("{text}: {error}"),
            };
            for matching in matches.iter().take(4) {
                let back = condition_text(matching).unwrap_or_else(|| "all".into());
                if !back.contains('=') {
                    assert_eq!(matches_of(&back), Ok(vec![*matching]), "{back}");
                    stated += 1;
                }
            }
            let (rules, _) = classifier_rules(&[&text], &NoNames);
            let program = Program::new(rules, classify::Layout::Ip);
            for _ in 0..60 {
                let mut pick = |from: &[u8]| from[random.below(from.len() as u32) as usize];
                let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
                let protocol = pick(&[1, 6, 17, 47]);
                frame.extend([0x45, pick(&[0, 4, 8]), 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0]);
                frame.extend([10, 0, 0, pick(&[0, 1, 2, 3]), 10, 0, 0, pick(&[0, 3, 4, 9])]);
                let ports = match protocol {
                    1 => [pick(&[0, 1, 2, 3]), 0, 0, 0],
                    _ => [0, pick(&[0, 1, 2, 3]), 0, pick(&[0, 1, 2, 3, 9])],
                };
                frame.extend(ports);
                frame.extend([0; 16]);
                let (key, _) = Key::extract(&frame, &Ingress::default());
                let headers = Headers::new(&frame[14..], 20).with_link(&frame);
                let expected = program.first_match(&headers).is_some();
                let found = matches.iter().any(|matching| matching.matches(&key));
                assert_eq!(found, expected, "{text}: {key:?}");
                checked += 1;
                met += u32::from(expected);
            }
        }
        assert!(stated > 200, "{stated} matches");
        assert!(checked > 8_000 && met > 1_500 && met < checked - 1_500, "{met} of {checked}");
    }
}
