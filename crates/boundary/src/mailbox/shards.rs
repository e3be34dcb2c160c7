//! What boxes that run one configuration together tell their host.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::{MAX_CORES, MAX_SPREAD_RANGES};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// Numbers that the translators of all shards give to flows, a part of them in each shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpreadRange {
    /// Ports of an address, both ends included.
    Ports(Ipv4Addr, u16, u16),
    /// Addresses, both ends included.
    Addresses(Ipv4Addr, Ipv4Addr),
}

impl SpreadRange {
    /// Encodes ranges for [`Reply::Done`](crate::Reply::Done).
    pub fn encode(ranges: &[Self]) -> Vec<u8> {
        let mut fields = Encoder::default();
        fields.u32(ranges.len() as u32);
        for range in ranges {
            match *range {
                Self::Ports(address, first, last) => {
                    fields.u32(1).u32(address.to_bits()).u32(u32::from(first) << 16 | u32::from(last));
                }
                Self::Addresses(first, last) => {
                    fields.u32(2).u32(first.to_bits()).u32(last.to_bits());
                }
            }
        }
        fields.0
    }

    /// Decodes the ranges in a reply. Ranges that end before they begin are refused.
    pub fn decode(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut fields = Decoder(bytes);
        let mut ranges = Vec::new();
        for _ in 0..fields.count(MAX_SPREAD_RANGES)? {
            let (kind, one, two) = (fields.u32()?, fields.u32()?, fields.u32()?);
            let (range, is_ordered) = match kind {
                1 => {
                    let (first, last) = ((two >> 16) as u16, two as u16);
                    (Self::Ports(one.into(), first, last), first <= last)
                }
                2 => (Self::Addresses(one.into(), two.into()), one <= two),
                other => return Err(DecodeError::Value(other.into())),
            };
            if !is_ordered {
                return Err(DecodeError::Value(two.into()));
            }
            ranges.push(range);
        }
        fields.end()?;
        Ok(ranges)
    }
}

/// Encodes the answers of all shards, in their order.
pub fn encode_answers(answers: &[Vec<u8>]) -> Vec<u8> {
    let mut fields = Encoder::default();
    fields.u32(answers.len() as u32);
    for answer in answers {
        fields.bytes(answer);
    }
    fields.0
}

/// Decodes the answers of all shards.
pub fn decode_answers(bytes: &[u8]) -> Result<Vec<&str>, DecodeError> {
    let mut fields = Decoder(bytes);
    let count = fields.count(MAX_CORES)?;
    let answers = (0..count).map(|_| fields.text()).collect::<Result<Vec<_>, _>>()?;
    fields.end()?;
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_answers_arrive_as_they_were_sent() {
        let ranges = [
            SpreadRange::Ports(Ipv4Addr::new(192, 0, 2, 1), 1024, 65_535),
            SpreadRange::Addresses(Ipv4Addr::new(192, 0, 2, 8), Ipv4Addr::new(192, 0, 2, 15)),
        ];
        let encoded = SpreadRange::encode(&ranges);
        assert_eq!(SpreadRange::decode(&encoded), Ok(ranges.to_vec()));
        for length in 0..encoded.len() {
            assert_eq!(SpreadRange::decode(&encoded[..length]), Err(DecodeError::Short));
        }
        let reversed = [SpreadRange::Ports(Ipv4Addr::LOCALHOST, 2, 1)];
        assert_eq!(SpreadRange::decode(&SpreadRange::encode(&reversed)), Err(DecodeError::Value(0x2_0001)));
        let answers = [b"5".to_vec(), Vec::new()];
        assert_eq!(decode_answers(&encode_answers(&answers)), Ok(Vec::from(["5", ""])));
        let many = alloc::vec![Vec::new(); MAX_CORES + 1];
        assert_eq!(decode_answers(&encode_answers(&many)), Err(DecodeError::Count(MAX_CORES + 1)));
    }
}
