//! Tests that are one call each.

/// Makes a test of each line, `NAME => CALL,`.
#[macro_export]
macro_rules! cases {
    ($($(#[$attribute:meta])* $name:ident => $call:expr,)*) => {
        $($(#[$attribute])*
        #[tokio::test]
        async fn $name() {
            $call.await;
        })*
    };
}
