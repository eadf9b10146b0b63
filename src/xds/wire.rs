//! The protobuf wire format as far as we walk it by hand: a sequence of fields, each with its
//! number and where its value lies.

use std::ops::Range;

/// The value of a field as the wire has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Raw {
    /// A varint.
    Varint(u64),
    /// Eight bytes, little endian.
    Fixed64(u64),
    /// Four bytes, little endian.
    Fixed32(u32),
    /// Length-delimited: a string, bytes, a message or a packed list, at this place.
    Bytes(Range<usize>),
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// The field number.
    pub(super) number: u32,
    /// Where the field lies as a whole, with its tag.
    pub(super) whole: Range<usize>,
    /// Its value.
    pub(super) value: Raw,
}

/// The bytes are not a sequence of protobuf fields. Groups, which proto3 does not have, count as
/// malformed too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// The field at `at`; `None` at the end of the bytes.
pub(super) fn field(bytes: &[u8], at: usize) -> Result<Option<Field>, Malformed> {
    if at >= bytes.len() {
        return Ok(None);
    }
    let (tag, mut next) = varint(bytes, at)?;
    let number = u32::try_from(tag >> 3).map_err(|_| Malformed)?;
    let value = match tag & 7 {
        0 => {
            let (value, end) = varint(bytes, next)?;
            next = end;
            Raw::Varint(value)
        }
        1 => Raw::Fixed64(u64::from_le_bytes(take(bytes, &mut next)?)),
        2 => {
            let (length, start) = varint(bytes, next)?;
            let length = usize::try_from(length).map_err(|_| Malformed)?;
            next = start.checked_add(length).filter(|end| *end <= bytes.len()).ok_or(Malformed)?;
            Raw::Bytes(start..next)
        }
        5 => Raw::Fixed32(u32::from_le_bytes(take(bytes, &mut next)?)),
        _ => return Err(Malformed),
    };
    Ok(Some(Field { number, whole: at..next, value }))
}

/// The varint at `at`, and where it ends.
pub(super) fn varint(bytes: &[u8], at: usize) -> Result<(u64, usize), Malformed> {
    let mut value = 0u64;
    for (i, byte) in bytes.get(at..).unwrap_or(&[]).iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Ok((value, at + i + 1));
        }
    }
    Err(Malformed)
}

/// How a scalar is written, which a packed list does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    /// As a varint.
    Varint,
    /// In four bytes.
    Fixed32,
    /// In eight bytes.
    Fixed64,
}

/// The items of the packed list that lies at `place`.
pub(super) fn packed(
    bytes: &[u8],
    place: Range<usize>,
    scalar: Scalar,
) -> Result<Vec<Raw>, Malformed> {
    let bytes = bytes.get(..place.end).ok_or(Malformed)?;
    let mut items = Vec::new();
    let mut at = place.start;
    while at < place.end {
        items.push(match scalar {
            Scalar::Varint => {
                let (value, end) = varint(bytes, at)?;
                at = end;
                Raw::Varint(value)
            }
            Scalar::Fixed32 => Raw::Fixed32(u32::from_le_bytes(take(bytes, &mut at)?)),
            Scalar::Fixed64 => Raw::Fixed64(u64::from_le_bytes(take(bytes, &mut at)?)),
        });
    }
    Ok(items)
}

/// Where the type URL and the value of an encoded `Any` lie; an absent one is an empty range.
pub(super) fn any_parts(any: &[u8]) -> Result<(Range<usize>, Range<usize>), Malformed> {
    let (mut type_url, mut value) = (0..0, 0..0);
    let mut at = 0;
    while let Some(field) = field(any, at)? {
        match (field.number, field.value) {
            (1, Raw::Bytes(range)) => type_url = range,
            (2, Raw::Bytes(range)) => value = range,
            _ => {}
        }
        at = field.whole.end;
    }
    Ok((type_url, value))
}

fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Result<[u8; N], Malformed> {
    let value = bytes.get(*at..).and_then(|b| b.first_chunk::<N>()).ok_or(Malformed)?;
    *at += N;
    Ok(*value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wire_type_is_read_with_its_place() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x12, 0x02, b'h', b'i', // 2: "hi"
            0x1d, 1, 0, 0, 0, // 3: fixed32 1
            0x21, 2, 0, 0, 0, 0, 0, 0, 0, // 4: fixed64 2
        ];
        let mut at = 0;
        let mut seen = Vec::new();
        while let Some(f) = field(&bytes, at).unwrap() {
            at = f.whole.end;
            seen.push((f.number, f.value));
        }
        let expected = [
            (1, Raw::Varint(150)),
            (2, Raw::Bytes(5..7)),
            (3, Raw::Fixed32(1)),
            (4, Raw::Fixed64(2)),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_packed_list_is_cut_into_its_items() {
        let bytes = [0x0a, 3, 0x96, 0x01, 0x05];
        let items = packed(&bytes, 2..5, Scalar::Varint);
        assert_eq!(items, Ok(vec![Raw::Varint(150), Raw::Varint(5)]));
        assert_eq!(packed(&bytes, 2..3, Scalar::Varint), Err(Malformed));
        assert_eq!(packed(&bytes, 2..5, Scalar::Fixed32), Err(Malformed));
    }

    #[test]
    fn torn_bytes_are_malformed_not_a_panic() {
        for bytes in [&[0x08][..], &[0x08, 0x80], &[0x12, 5, 1], &[0x1d, 1], &[0x0b], &[0xff; 11]] {
            assert_eq!(field(bytes, 0), Err(Malformed), "{bytes:?}");
        }
    }
}
