package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/aws_msk_iam_v2"
)

// mskIAM authenticates to Amazon MSK by IAM. Region and credentials come from where the AWS SDK looks for them. Each
// connection signs with credentials that are still valid, so that those of a role are renewed.
func mskIAM() (sasl.Mechanism, error) {
	aws, err := config.LoadDefaultConfig(context.Background()) // reads the environment and files, and connects to nothing
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration for Kafka: %w", err)
	}
	if aws.Region == "" {
		return nil, errors.New("the AWS region for Kafka is unknown: set AWS_REGION")
	}
	return aws_msk_iam_v2.NewMechanism(aws), nil
}
