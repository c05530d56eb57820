//! The page of the reference is made of the rows.
