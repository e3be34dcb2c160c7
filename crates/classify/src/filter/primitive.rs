//! One primitive of a rule (`src port > 1023`), validated and completed from its predecessor.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::diagnostic::RuleDiagnosticKind;
use super::vocabulary::{
    DCCP, Direction, Field, Kind, Layer, Mask, Operator, TCP, TOS, UDP, kind_text, protocol_text,
};
use crate::names::TCP_OR_UDP;

/// A primitive being parsed. Afterwards it supplies defaults to the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Primitive {
    /// The quantity to test.
    pub(super) kind: Option<Kind>,
    /// Kind of the value.
    pub(super) data: Option<Kind>,
    pub(super) operator: Operator,
    pub(super) negated: bool,
    pub(super) direction: Option<Direction>,
    pub(super) protocol: Option<u32>,
    /// Number or address (with the first byte in the top bits).
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

type Warnings = Vec<RuleDiagnosticKind>;

impl Primitive {
    /// The name for messages: direction and kind.
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

    fn wrong(&self, what: &'static str) -> RuleDiagnosticKind {
        RuleDiagnosticKind::Primitive(self.text(), what)
    }

    /// Fills in the missing parts from `previous` and checks that all parts are consistent.
    ///
    /// # Errors
    /// The inconsistency. Warnings are pushed to `warnings`.
    pub(super) fn complete(
        &mut self,
        previous: &Primitive,
        layer: Option<Layer>,
        mask: Option<Mask>,
        warnings: &mut Warnings,
    ) -> Result<(), RuleDiagnosticKind> {
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
            _ if said_direction => warnings.push(RuleDiagnosticKind::DirectionIgnored(self.text())),
            _ => {}
        }
        Ok(())
    }

    /// Infers the quantity to test from the value and from the previous primitive.
    fn infer_kind(&mut self, previous: &Primitive) -> Result<(), RuleDiagnosticKind> {
        if self.data == Some(Kind::Integer) {
            match previous.kind {
                Some(Kind::Field(_) | Kind::Protocol | Kind::Port) => self.data = previous.kind,
                _ => return Err(RuleDiagnosticKind::NeedsField),
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
            None => return Err(RuleDiagnosticKind::Partial),
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
    ) -> Result<(), RuleDiagnosticKind> {
        let Some(kind) = self.kind else { return Err(RuleDiagnosticKind::Partial) };
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
                    // As in Click, a number is the address as stored in memory, lowest byte first.
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
                if !matches!(protocol, TCP | UDP | DCCP | TCP_OR_UDP) {
                    return Err(RuleDiagnosticKind::BadProtocol("port", protocol));
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
                let protocol = *self.protocol.get_or_insert(TCP);
                if protocol != TCP {
                    return Err(RuleDiagnosticKind::BadProtocol("tcp opt", protocol));
                }
                if self.operator != Operator::Equal || self.negated || mask.is_some() {
                    return Err(self.wrong("operator or mask not supported"));
                }
                if self.value > 255 {
                    return Err(RuleDiagnosticKind::FlagOutOfRange(self.value as i32));
                }
                self.mask = self.value;
            }
            Kind::EcnCapable => {
                match self.data {
                    None => (self.value, self.negated) = (0, true),
                    Some(Kind::Integer) => {}
                    Some(_) => return Err(self.wrong("value missing")),
                }
                self.set_mask(3, self.number_mask(mask)?, warnings)?;
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

    fn check_protocol(
        &mut self,
        mask: Option<Mask>,
        warnings: &mut Warnings,
    ) -> Result<(), RuleDiagnosticKind> {
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
                return Err(RuleDiagnosticKind::Primitive(name, "operator or mask not supported"));
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

    fn no_relation(&self) -> Result<(), RuleDiagnosticKind> {
        if self.operator == Operator::Equal { Ok(()) } else { Err(self.wrong("operator not supported")) }
    }

    /// The mask as a number, 0 if there is none.
    fn number_mask(&self, mask: Option<Mask>) -> Result<u32, RuleDiagnosticKind> {
        match mask {
            None => Ok(0),
            Some(Mask::Number(mask)) => Ok(mask),
            Some(_) => Err(self.wrong("bad mask")),
        }
    }

    /// Normalizes a numeric value and mask for a test. `bound` is the field's maximum value.
    fn set_mask(
        &mut self,
        bound: u32,
        provided: u32,
        warnings: &mut Warnings,
    ) -> Result<(), RuleDiagnosticKind> {
        let mask = if provided == 0 { bound } else { provided };
        if mask & !bound != 0 {
            return Err(RuleDiagnosticKind::MaskOutOfRange(self.text(), bound));
        }
        let value = self.value;
        if self.operator == Operator::Equal {
            if value > bound {
                return Err(RuleDiagnosticKind::ValueOutOfRange(self.text(), bound));
            }
            self.mask = mask;
            return Ok(());
        }
        let less = self.operator == Operator::Less;
        let is_constant = if less { value == 0 || value > mask } else { value >= mask };
        if is_constant {
            let always = (less && value > mask) != self.negated;
            let operator = match (less, self.negated) {
                (false, false) => ">",
                (false, true) => "<=",
                (true, true) => ">=",
                (true, false) => "<",
            };
            warnings.push(RuleDiagnosticKind::ConstantRelation { operator, value, always, bound: mask });
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
        // The masked bits can take certain values only: compare with the greatest of them that is at most the value.
        if let Some(bit) = (self.value & !mask & bound).checked_ilog2() {
            self.value = (self.value | ((1 << bit) - 1)) & mask;
        }
        Ok(())
    }
}
