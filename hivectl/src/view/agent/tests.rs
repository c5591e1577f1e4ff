//! Tests of how an agent is printed.

use super::*;

#[test]
fn a_park_that_ends_with_a_login_is_told_from_others() {
    let parked = |cause: v1::TurnOutcome| {
        Park::from(v1::Park { cause: cause.into(), ..v1::Park::default() })
    };
    assert!(parked(v1::TurnOutcome::AuthFailed).needs_login());
    assert!(!parked(v1::TurnOutcome::RateLimited).needs_login());
}

#[test]
fn the_context_is_told_with_its_share_of_the_window() {
    let told = |context_tokens, context_window_tokens| {
        let agent = v1::Agent { context_tokens, context_window_tokens, ..v1::Agent::default() };
        Agent::from(agent).context(&Style::plain())
    };
    assert_eq!([told(0, 200_000), told(150_000, 0)], ["-", "150000 tokens"]);
    assert_eq!(
        [told(150_000, 200_000), told(250_000, 200_000)].map(|told| told.replace(" tokens", "")),
        ["150000 of 200000 (75 %)", "250000 of 200000 (125 %)"]
    );
}
