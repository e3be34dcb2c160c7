//! Translates a primitive into tests of header words.

use alloc::vec;
use alloc::vec::Vec;

use super::primitive::Primitive;
use super::vocabulary::{Direction, Kind, Operator, TCP, UDP};
use crate::expression::{Expression, Relation, Test};
use crate::headers::Base;
use crate::names::{PAYLOAD, TCP_OR_UDP, TRANSPORT};

impl Primitive {
    /// The condition that the completed primitive expresses.
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

    /// The test for source, destination or both. Negation applies to the whole: not both, or neither.
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

/// The test for a transport protocol, real or a pseudo-protocol.
fn protocol_test(protocol: u32) -> Option<Expression> {
    let is = |number: u32| Expression::from(Test::equal(Base::Network, 8, 0xff << 16, number << 16));
    match protocol {
        TCP_OR_UDP => Some(Expression::Any(vec![is(TCP), is(UDP)])),
        TRANSPORT | PAYLOAD => None,
        other if other >= 256 => None,
        other => Some(is(other)),
    }
}
