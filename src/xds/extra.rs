//! Messages that the envoy-types crate lacks, written by hand after `proto/**/*.proto`. Generators
//! use them through [`super::pb`].

use envoy_types::pb::google::protobuf::Struct;
use prost::{Message, Name};

macro_rules! typed_struct {
    ($(#[$doc:meta])* $name:ident, $package:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Message)]
        pub struct $name {
            /// The type URL of the message that `value` describes.
            #[prost(string, tag = "1")]
            pub type_url: String,
            /// The message in its JSON form.
            #[prost(message, optional, tag = "2")]
            pub value: Option<Struct>,
        }

        impl Name for $name {
            const NAME: &'static str = "TypedStruct";
            const PACKAGE: &'static str = $package;

            fn full_name() -> String {
                concat!($package, ".TypedStruct").into()
            }

            fn type_url() -> String {
                concat!("type.googleapis.com/", $package, ".TypedStruct").into()
            }
        }
    };
}

typed_struct! {
    /// `xds.type.v3.TypedStruct`: a message known by its type name and as JSON only.
    TypedStruct, "xds.type.v3"
}
typed_struct! {
    /// `udpa.type.v1.TypedStruct`, the predecessor, which old configuration still uses.
    UdpaTypedStruct, "udpa.type.v1"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::descriptors::pool;
    use crate::xds::pb;
    use prost_reflect::DynamicMessage;

    /// The struct and the declaration in `proto/` must agree on every field.
    fn agrees_with_its_declaration<M: Message + Name>(message: &M) {
        let descriptor = pool().get_message_by_name(&M::full_name()).expect("declared");
        let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice());
        let dynamic = dynamic.expect("decodes");
        assert_eq!(dynamic.unknown_fields().count(), 0);
        let url = dynamic.get_field_by_name("type_url").expect("a field");
        assert_eq!(url.as_str(), Some("u"));
        assert!(dynamic.has_field_by_name("value"));
        assert!(M::type_url().ends_with(&format!("/{}", M::full_name())));
    }

    #[test]
    fn both_forms_agree_with_their_declarations() {
        let value = Some(pb::object([("k", pb::boolean(true))]));
        agrees_with_its_declaration(&TypedStruct { type_url: "u".into(), value: value.clone() });
        agrees_with_its_declaration(&UdpaTypedStruct { type_url: "u".into(), value });
    }
}
