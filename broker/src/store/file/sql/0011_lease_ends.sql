-- The writer has the ends of leases in memory, for each agent the earliest.
DROP INDEX open_delivery_until;
