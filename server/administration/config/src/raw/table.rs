//! `table!`: declares a table of the file with the default of each key beside it.

/// Declares the struct, its serde and schema implementations, and its `Default`. Unknown keys are rejected.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$of_field:meta])* $of:vis $field:ident: $kind:ty = $default:expr,)+
        }
    ) => {
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$meta])*
        $visibility struct $name {
            $($(#[$of_field])* $of $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }
    };
}

pub(crate) use table;
