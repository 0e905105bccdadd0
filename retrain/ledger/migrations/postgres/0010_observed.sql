-- What the statistic of the contract was over the new version, when its outcome was known; NULL if it was not measured.
ALTER TABLE requests ADD COLUMN observed DOUBLE PRECISION;
