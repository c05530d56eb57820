CREATE TABLE test1 (
    test1_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    test1_timestamp INT NOT NULL,
    test1_data VARCHAR(2000) NOT NULL,
    test1_some_fk INT NOT NULL
) ENGINE=InnoDB;
INSERT INTO test1 (test1_timestamp, test1_data, test1_some_fk) VALUES
    (1570000000, 'the first row of two, with a text that is long enough to be one of an application', 7),
    (1570000001, 'the second row', 8);
