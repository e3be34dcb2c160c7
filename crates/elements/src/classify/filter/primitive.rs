//! One primitive of a rule (`src port > 1023`): checked, completed from its predecessor, turned into an expression.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::super::expression::{Expression, Relation, Test};
use super::super::headers::Base;
use super::super::names::{PAYLOAD, TCP_OR_UDP, TRANSPORT};
use super::problem::ProblemKind;

/// A field of a header: `length` bits that start `offset` bits into the header of `protocol` (none: of IP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) protocol: Option<u32>,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// What a primitive tests, or what kind of value it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Host,
    Net,
    Ether,
    Protocol,
    Port,
    TcpFlag,
    Fragment,
    Unfragmented,
    EcnCapable,
    Congestion,
    Field(Field),
}

const fn ip(offset: u32, length: u32) -> Kind {
    Kind::Field(Field { protocol: None, offset, length })
}

/// `ip tos`.
pub(super) const TOS: Kind = ip(8, 8);
/// `icmp type`.
pub(super) const ICMP_TYPE: Kind = Kind::Field(Field { protocol: Some(1), offset: 0, length: 8 });

/// The words that say what a primitive tests.
const KINDS: &[(&str, Kind, &str)] = &[
    ("ce", Kind::Congestion, "ip ce"),
    ("dscp", ip(8, 6), "ip dscp"),
    ("ect", Kind::EcnCapable, "ip ect"),
    ("frag", Kind::Fragment, "ip frag"),
    ("hl", ip(4, 4), "ip hl"),
    ("host", Kind::Host, "ip host"),
    ("id", ip(32, 16), "ip id"),
    ("len", ip(16, 16), "ip len"),
    ("net", Kind::Net, "ip net"),
    ("opt", Kind::TcpFlag, "tcp opt"),
    ("port", Kind::Port, "port"),
    ("proto", Kind::Protocol, "proto"),
    ("tos", TOS, "ip tos"),
    ("ttl", ip(64, 8), "ip ttl"),
    ("type", ICMP_TYPE, "icmp type"),
    ("unfrag", Kind::Unfragmented, "ip unfrag"),
    ("vers", ip(0, 4), "ip vers"),
    ("win", Kind::Field(Field { protocol: Some(6), offset: 112, length: 16 }), "tcp win"),
];

/// The kind that `word` names.
pub(super) fn kind_named(word: &str) -> Option<Kind> {
    KINDS.iter().find(|(name, ..)| *name == word).map(|(_, kind, _)| *kind)
}

/// The kind as messages print it.
pub(super) fn kind_text(kind: Option<Kind>) -> String {
    match kind {
        None => "<none>".to_string(),
        Some(Kind::Ether) => "ether host".to_string(),
        Some(Kind::Integer) => "<unknown type 3>".to_string(),
        Some(kind) => match (KINDS.iter().find(|(_, other, _)| *other == kind), kind) {
            (Some((_, _, text)), _) => (*text).to_string(),
            (None, Kind::Field(Field { protocol: Some(protocol), .. })) => {
                format!("{}[...]", protocol_text(Some(protocol)))
            }
            (None, _) => "ip[...]".to_string(),
        },
    }
}

/// The protocol as messages print it.
pub(super) fn protocol_text(protocol: Option<u32>) -> String {
    match protocol {
        None => String::new(),
        Some(1) => "icmp".to_string(),
        Some(2) => "igmp".to_string(),
        Some(4) => "ipip".to_string(),
        Some(6) => "tcp".to_string(),
        Some(17) => "udp".to_string(),
        Some(TCP_OR_UDP) => "tcpudp".to_string(),
        Some(TRANSPORT) => "transp".to_string(),
        Some(other) => format!("ip proto {other}"),
    }
}

/// Which of source and destination a primitive looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Source,
    Destination,
    Both,
    Either,
}

/// The operator of a primitive; together with `negated` it makes all six.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Greater,
    Less,
}

/// The header word in front of a primitive, or implied by its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Ip,
    Ether,
}

/// A bit mask written after `&`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    Number(u32),
    Address(u32),
    Ether([u8; 6]),
}

/// A primitive while it is read, and as the next one's model afterwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Primitive {
    /// What is tested.
    pub(super) kind: Option<Kind>,
    /// Kind of the value.
    pub(super) data: Option<Kind>,
    pub(super) operator: Operator,
    pub(super) negated: bool,
    pub(super) direction: Option<Direction>,
    pub(super) protocol: Option<u32>,
    /// Number or address (the first byte in the top bits).
    pub(super) value: u32,
    pub(super) mask: u32,
    pub(super) ether: [u8; 6],
    pub(super) ether_mask: [u8; 6],
}

impl Default for Primitive {
    fn default() -> Self {
        Self {
            kind: None,
            data: None,
            operator: Operator::Equal,
            negated: false,
            direction: None,
            protocol: None,
            value: 0,
            mask: 0,
            ether: [0; 6],
            ether_mask: [0; 6],
        }
    }
}

type Warnings = Vec<ProblemKind>;

impl Primitive {
    /// Name for messages: direction and kind.
    fn text(&self) -> Box<str> {
        let direction = match self.direction {
            None => "",
            Some(Direction::Source) => "src ",
            Some(Direction::Destination) => "dst ",
            Some(Direction::Either) => "src or dst ",
            Some(Direction::Both) => "src and dst ",
        };
        format!("{direction}{}", kind_text(self.kind)).into()
    }

    fn wrong(&self, what: &'static str) -> ProblemKind {
        ProblemKind::Primitive(self.text(), what)
    }

    /// Completes the primitive with what `previous` says and checks that its parts fit together.
    ///
    /// # Errors
    /// What does not fit. Warnings are pushed to `warnings`.
    pub(super) fn complete(
        &mut self,
        previous: &Primitive,
        layer: Option<Layer>,
        mask: Option<Mask>,
        warnings: &mut Warnings,
    ) -> Result<(), ProblemKind> {
        let said_direction = self.direction.is_some();
        if self.kind.is_none() {
            self.infer_kind(previous)?;
        }
        let layer = layer.unwrap_or(if self.data == Some(Kind::Ether) { Layer::Ether } else { Layer::Ip });
        if layer == Layer::Ether && self.kind == Some(Kind::Host) {
            self.kind = Some(Kind::Ether);
        }
        self.check(layer, mask, warnings)?;
        match self.kind {
            Some(Kind::Host | Kind::Port | Kind::Ether) => {
                self.direction.get_or_insert(Direction::Either);
            }
            _ if said_direction => warnings.push(ProblemKind::DirectionIgnored(self.text())),
            _ => {}
        }
        Ok(())
    }

    /// Finds what is tested from the value and from what the previous primitive tested.
    fn infer_kind(&mut self, previous: &Primitive) -> Result<(), ProblemKind> {
        if self.data == Some(Kind::Integer) {
            match previous.kind {
                Some(Kind::Field(_) | Kind::Protocol | Kind::Port) => self.data = previous.kind,
                _ => return Err(ProblemKind::NeedsField),
            }
        }
        match self.data {
            Some(Kind::Host | Kind::Net | Kind::TcpFlag | Kind::Ether) => {
                self.direction = self.direction.or(previous.direction);
            }
            Some(Kind::Port) => {
                self.direction = self.direction.or(previous.direction);
                self.protocol = self.protocol.or(previous.protocol);
            }
            Some(Kind::Field(Field { protocol: Some(protocol), .. })) => {
                self.protocol.get_or_insert(protocol);
            }
            None if self.protocol.is_some() => {
                self.kind = Some(Kind::Protocol);
                return Ok(());
            }
            None => return Err(ProblemKind::Partial),
            _ => {}
        }
        self.kind = self.data;
        Ok(())
    }

    fn check(
        &mut self,
        layer: Layer,
        mask: Option<Mask>,
        warnings: &mut Warnings,
    ) -> Result<(), ProblemKind> {
        let Some(kind) = self.kind else { return Err(ProblemKind::Partial) };
        let is_ip = layer == Layer::Ip;
        if !is_ip && !matches!(kind, Kind::Host | Kind::Net | Kind::Ether) {
            return Err(self.wrong("ip only"));
        }
        match kind {
            Kind::Host | Kind::Net => {
                if !is_ip || self.data != self.kind {
                    return Err(self.wrong("address missing"));
                }
                self.no_relation()?;
                self.kind = Some(Kind::Host);
                self.mask = match mask {
                    Some(Mask::Address(mask)) => mask,
                    // A number is taken as Click takes it: as the address in memory, lowest byte first.
                    Some(Mask::Number(mask)) => mask.swap_bytes(),
                    Some(Mask::Ether(_)) => return Err(self.wrong("bad mask")),
                    None if kind == Kind::Net => self.mask,
                    None => u32::MAX,
                };
            }
            Kind::Ether => {
                if is_ip || self.data != Some(Kind::Ether) {
                    return Err(self.wrong("address missing"));
                }
                self.no_relation()?;
                self.ether_mask = match mask {
                    None => [0xff; 6],
                    Some(Mask::Ether(mask)) => mask,
                    Some(_) => return Err(self.wrong("bad mask")),
                };
            }
            Kind::Protocol => self.check_protocol(mask, warnings)?,
            Kind::Port => {
                if self.data == Some(Kind::Integer) {
                    self.data = Some(Kind::Port);
                }
                if self.data != Some(Kind::Port) {
                    return Err(self.wrong("value missing"));
                }
                let protocol = *self.protocol.get_or_insert(TCP_OR_UDP);
                if !matches!(protocol, 6 | 17 | 33 | TCP_OR_UDP) {
                    return Err(ProblemKind::BadProtocol("port", protocol));
                }
                self.set_mask(0xffff, self.number_mask(mask)?, warnings)?;
            }
            Kind::TcpFlag => {
                if self.data == Some(Kind::Integer) {
                    self.data = Some(Kind::TcpFlag);
                }
                if self.data != Some(Kind::TcpFlag) {
                    return Err(self.wrong("value missing"));
                }
                let protocol = *self.protocol.get_or_insert(6);
                if protocol != 6 {
                    return Err(ProblemKind::BadProtocol("tcp opt", protocol));
                }
                if self.operator != Operator::Equal || self.negated || mask.is_some() {
                    return Err(self.wrong("operator or mask not supported"));
                }
                if self.value > 255 {
                    return Err(ProblemKind::FlagOutOfRange(self.value as i32));
                }
                self.mask = self.value;
            }
            Kind::EcnCapable => {
                let provided = match self.data {
                    None => {
                        (self.value, self.negated) = (0, true);
                        0
                    }
                    Some(Kind::Integer) => self.number_mask(mask)?,
                    Some(_) => return Err(self.wrong("value missing")),
                };
                self.set_mask(3, provided, warnings)?;
                self.kind = Some(TOS);
            }
            Kind::Congestion | Kind::Fragment | Kind::Unfragmented => {
                if self.data.is_some() || mask.is_some() {
                    return Err(self.wrong("value not supported"));
                }
                match kind {
                    Kind::Congestion => (self.value, self.mask, self.kind) = (3, 3, Some(TOS)),
                    Kind::Unfragmented => (self.negated, self.kind) = (true, Some(Kind::Fragment)),
                    _ => {}
                }
            }
            Kind::Field(field) => {
                if self.data != Some(Kind::Integer) && self.data != self.kind {
                    return Err(self.wrong("value missing"));
                }
                let provided = self.number_mask(mask)?;
                self.set_mask(u32::MAX >> (32 - field.length), provided, warnings)?;
            }
            Kind::Integer => return Err(self.wrong("value missing")),
        }
        Ok(())
    }

    fn check_protocol(&mut self, mask: Option<Mask>, warnings: &mut Warnings) -> Result<(), ProblemKind> {
        match self.data {
            Some(Kind::Integer | Kind::Protocol) => {
                if self.protocol.is_some_and(|protocol| protocol != self.value) {
                    return Err(self.wrong("specified twice"));
                }
            }
            None => match self.protocol {
                Some(protocol) => self.value = protocol,
                None => return Err(self.wrong("value missing")),
            },
            Some(_) => return Err(self.wrong("value missing")),
        }
        (self.data, self.protocol) = (None, None);
        if (self.value as i32) >= 256 {
            if self.operator != Operator::Equal || mask.is_some() {
                let name = protocol_text(Some(self.value)).into();
                return Err(ProblemKind::Primitive(name, "operator or mask not supported"));
            }
            self.mask = 0xff;
        } else {
            self.set_mask(0xff, self.number_mask(mask)?, warnings)?;
        }
        if self.operator == Operator::Equal && self.mask == 0xff && !self.negated {
            self.protocol = Some(self.value);
        }
        Ok(())
    }

    fn no_relation(&self) -> Result<(), ProblemKind> {
        if self.operator == Operator::Equal { Ok(()) } else { Err(self.wrong("operator not supported")) }
    }

    /// The mask as a number, 0 when there is none.
    fn number_mask(&self, mask: Option<Mask>) -> Result<u32, ProblemKind> {
        match mask {
            None => Ok(0),
            Some(Mask::Number(mask)) => Ok(mask),
            Some(_) => Err(self.wrong("bad mask")),
        }
    }

    /// Brings value and mask of a number to the form of [`Test`]; `bound` is the greatest value of the field.
    fn set_mask(&mut self, bound: u32, provided: u32, warnings: &mut Warnings) -> Result<(), ProblemKind> {
        let mask = if provided == 0 { bound } else { provided };
        if mask & !bound != 0 {
            return Err(ProblemKind::MaskOutOfRange(self.text(), bound));
        }
        let value = self.value;
        if self.operator == Operator::Equal {
            if value > bound {
                return Err(ProblemKind::ValueOutOfRange(self.text(), bound));
            }
            self.mask = mask;
            return Ok(());
        }
        let less = self.operator == Operator::Less;
        if if less { value == 0 || value > mask } else { value >= mask } {
            let always = (less && value > mask) != self.negated;
            let operator = match (less, self.negated) {
                (false, false) => ">",
                (false, true) => "<=",
                (true, true) => ">=",
                (true, false) => "<",
            };
            warnings.push(ProblemKind::ConstantRelation { operator, value, always, bound: mask });
            (self.value, self.mask, self.negated, self.operator) = (0, 0, !always, Operator::Equal);
            return Ok(());
        }
        if less {
            // Less than N is not greater than N - 1.
            self.value -= 1;
            self.negated = !self.negated;
            self.operator = Operator::Greater;
        }
        self.mask = mask;
        // The masked bits can only be certain numbers: compare with the greatest of them up to the value.
        if let Some(bit) = (self.value & !mask & bound).checked_ilog2() {
            self.value = (self.value | ((1 << bit) - 1)) & mask;
        }
        Ok(())
    }

    /// The condition that the completed primitive stands for.
    pub(super) fn expression(&self) -> Expression {
        let mut parts = Vec::new();
        if let Some(protocol) = self.protocol {
            parts.extend(protocol_test(protocol));
        }
        let in_transport = match self.kind {
            Some(Kind::Port | Kind::TcpFlag) => true,
            Some(Kind::Field(field)) => field.protocol.is_some(),
            _ => false,
        };
        if in_transport {
            parts.push(fragment_test(0x1fff));
        }
        parts.extend(self.body());
        match parts.len() {
            1 => parts.remove(0),
            _ => Expression::All(parts),
        }
    }

    fn body(&self) -> Option<Expression> {
        let network = Base::Network;
        match self.kind? {
            Kind::Host => {
                Some(self.directed(|source| self.test(network, if source { 12 } else { 16 }, 0).into()))
            }
            Kind::Port => Some(
                self.directed(|source| self.test(Base::Transport, 0, if source { 16 } else { 0 }).into()),
            ),
            Kind::Ether => Some(self.directed(|source| self.ether_test(source))),
            Kind::Protocol if self.protocol.is_some_and(|protocol| protocol >= 256) => None,
            Kind::Protocol => Some(self.test(network, 8, 16).into()),
            Kind::TcpFlag => {
                let bits = self.value << 16;
                Some(Test::equal(Base::Transport, 12, bits, bits).into())
            }
            Kind::Fragment => {
                let Expression::Test(test) = fragment_test(0x3fff) else { return None };
                Some(test.negate_if(!self.negated).into())
            }
            Kind::Field(field) => {
                let base = if field.protocol.is_some() { Base::Transport } else { network };
                let bit = field.offset % 32;
                let word = u16::try_from(field.offset / 32 * 4).ok()?;
                Some(self.test(base, word, 32 - (bit + field.length)).into())
            }
            _ => None,
        }
    }

    fn test(&self, base: Base, offset: u16, shift: u32) -> Test {
        Test {
            base,
            offset,
            shift: shift as u8,
            mask: self.mask,
            value: self.value & self.mask,
            relation: match self.operator {
                Operator::Greater => Relation::Greater,
                _ => Relation::Equal,
            },
            negated: self.negated,
        }
    }

    /// The test for source, destination or both. A negated one is the opposite of the whole: not both, or neither.
    fn directed(&self, test: impl Fn(bool) -> Expression) -> Expression {
        match self.direction {
            Some(Direction::Source) => test(true),
            Some(Direction::Destination) => test(false),
            direction => {
                let both = vec![test(true), test(false)];
                if (direction == Some(Direction::Both)) != self.negated {
                    Expression::All(both)
                } else {
                    Expression::Any(both)
                }
            }
        }
    }

    fn ether_test(&self, source: bool) -> Expression {
        let word = |bytes: [u8; 6], from: usize, count: usize| {
            let mut word = [0; 4];
            word[4 - count..].copy_from_slice(&bytes[from..from + count]);
            u32::from_be_bytes(word)
        };
        let part = |offset: u16, from: usize, count: usize, shift: u8| {
            let (mask, value) = (word(self.ether_mask, from, count), word(self.ether, from, count));
            let test = Test {
                base: Base::Link,
                offset,
                shift,
                mask,
                value: value & mask,
                relation: Relation::Equal,
                negated: self.negated,
            };
            Expression::Test(test)
        };
        let halves = match source {
            true => vec![part(6, 0, 4, 0), part(10, 4, 2, 16)],
            false => vec![part(0, 0, 2, 16), part(2, 2, 4, 0)],
        };
        if self.negated { Expression::Any(halves) } else { Expression::All(halves) }
    }
}

impl From<Test> for Expression {
    fn from(test: Test) -> Self {
        Self::Test(test)
    }
}

/// The test that the bits of `mask` in the fragment word are clear.
fn fragment_test(mask: u32) -> Expression {
    Test::equal(Base::Network, 4, mask, 0).into()
}

/// The test for a transport protocol, real or made up.
fn protocol_test(protocol: u32) -> Option<Expression> {
    let is = |number: u32| Expression::from(Test::equal(Base::Network, 8, 0xff << 16, number << 16));
    match protocol {
        TCP_OR_UDP => Some(Expression::Any(vec![is(6), is(17)])),
        TRANSPORT | PAYLOAD => None,
        other if other >= 256 => None,
        other => Some(is(other)),
    }
}
