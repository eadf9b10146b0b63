//! Messages put together from parts that are encoded already. A repeated field is a sequence of
//! length-delimited encodings, so a part that is there as bytes need not be encoded again for each
//! message that contains it: its bytes are copied to where an encoder would have written them.

use super::wire;
use bytes::Bytes;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

/// The encoding of a message in which these encoded items follow those that its repeated field
/// `number` has in `outer`. When `outer` and the items are canonical, so is the whole.
///
/// It is the place where an encoder would put them as long as no field of the message with a larger
/// number is encoded before one with a smaller number, which holds but for oneofs.
pub fn with_items(outer: &[u8], number: u32, items: &[&Bytes]) -> Bytes {
    let at = end_of_field(outer, number);
    let item_len =
        |item: &&Bytes| key_len(number) + encoded_len_varint(item.len() as u64) + item.len();
    let mut whole = Vec::with_capacity(outer.len() + items.iter().map(item_len).sum::<usize>());
    whole.extend_from_slice(&outer[..at]);
    for item in items {
        encode_key(number, WireType::LengthDelimited, &mut whole);
        encode_varint(item.len() as u64, &mut whole);
        whole.extend_from_slice(item);
    }
    whole.extend_from_slice(&outer[at..]);
    whole.into()
}

/// Where the fields up to this number end.
fn end_of_field(encoded: &[u8], number: u32) -> usize {
    let mut at = 0;
    // Malformed bytes do not come out of an encoder; behind the fault there is no place to look for.
    while let Ok(Some(field)) = wire::field(encoded, at) {
        if field.number > number {
            return at;
        }
        at = field.whole.end;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::canonical;
    use crate::xds::pb::route::{RouteConfiguration, VirtualHost};

    #[test]
    fn items_stand_where_an_encoder_puts_them() {
        let host = |name: &str| VirtualHost { name: name.into(), ..Default::default() };
        let outer = RouteConfiguration {
            name: "80".into(),
            virtual_hosts: vec![host("own")],
            internal_only_headers: vec!["x".into()],
            ignore_port_in_host_matching: true,
            ..Default::default()
        };
        let mut whole = outer.clone();
        whole.virtual_hosts.extend([host("a"), host("")]);
        let items = [canonical::bytes(&host("a")), canonical::bytes(&host(""))];
        let made = with_items(&canonical::bytes(&outer), 2, &items.each_ref());
        assert_eq!(made, canonical::bytes(&whole));
    }

    #[test]
    fn a_message_without_other_fields_can_have_items() {
        assert_eq!(with_items(&[], 2, &[&Bytes::from_static(b"ab")]), vec![0x12, 2, b'a', b'b']);
        assert_eq!(with_items(b"\x08\x01", 2, &[]), vec![0x08, 1]);
    }
}
