DROP DATABASE IF EXISTS lab;
CREATE DATABASE lab;
USE lab;
CREATE TABLE test1 (
  test1_id INT PRIMARY KEY AUTO_INCREMENT,
  test1_timestamp INT NOT NULL,
  test1_data VARCHAR(2000) NOT NULL,
  test1_some_fk INT NOT NULL
) ENGINE = InnoDB;
INSERT INTO test1 (test1_timestamp, test1_data, test1_some_fk)
  VALUES (1571000000, REPEAT('first row ', 12), 1), (1571000001, REPEAT('second row ', 12), 2);
