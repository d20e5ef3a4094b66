use super::*;
use crate::affine::encodings::check_encodings;
use crate::affine::tests::check_kernel;

#[test]
fn encoded_points_are_read_in_g1() {
    if let Some(token) = crate::testing::token() {
        check_encodings(G1::new(token));
    }
}

#[test]
fn encoded_points_are_read_in_g2() {
    if let Some(token) = crate::testing::token() {
        check_encodings(G2::new(token));
    }
}

#[test]
fn g1_additions_agree_with_the_group_law() {
    if let Some(token) = crate::testing::token() {
        check_kernel(G1::new(token));
    }
}

#[test]
fn g2_additions_agree_with_the_group_law() {
    if let Some(token) = crate::testing::token() {
        check_kernel(G2::new(token));
    }
}
