-- Whether a target is being tried is looked up for every delivery, and its deliveries are kept for ever.
CREATE INDEX deliveries_in_flight ON deliveries (target, started_at) WHERE result = 'in_flight';
